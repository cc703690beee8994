"""One table of blocks: sizes, names, noise, mirror image and contract agree with what is seen."""

from dataclasses import replace

import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.locomotion.contract import make_contract
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.mirror import Mirror
from prism_motor.locomotion.observations import (
    FRAME,
    LEGGED_FRAME,
    Block,
    Frame,
    actor_names,
    frame_of,
    observation_size,
    resolve_bypass,
)
from prism_motor.locomotion.tasks import TASKS
from prism_motor.nn import ActorConfig, PrismActorConfig, build_actor
from prism_motor.sim.robots import make_robot

G1 = make_robot("g1")
VIEW = TASKS["g1"].observations


@pytest.mark.parametrize("name", sorted(TASKS.own))
def test_all_that_follows_from_the_table_has_the_size_of_what_is_seen(name):
    task = TASKS[name]
    env, frame = VelocityEnv(task, 2), frame_of(task)
    seen = env.get_observations()
    assert seen["policy"].shape[1] == task.observations.actor_frames * frame.actor_size
    assert seen["critic"].shape[1] == task.observations.critic_frames * frame.critic_size
    assert observation_size(task) == (seen["policy"].shape[1], 12)
    assert len(actor_names(task)) == len(set(actor_names(task))) == seen["policy"].shape[1]
    assert len(frame.noise()) == frame.actor_size
    mirror = Mirror(frame)
    assert (len(mirror.actor[0]), len(mirror.critic[0])) == (frame.actor_size, frame.critic_size)
    assert sorted(mirror.critic[0].tolist()) == list(range(frame.critic_size))
    blocks = make_contract(task, {"policy_sha256": ""})["observation"]["blocks"]
    assert [block["size"] for block in blocks] == [frame.size(b) for b in frame.actor_blocks]
    env.frame.check(env)


def test_blocks_scale_and_name_their_entries():
    env = VelocityEnv(replace(TASKS["g1"], observations=replace(VIEW, noise=0.0)), 3)
    actor, critic = env.frame.read(env)
    at = {name: i for i, name in enumerate(env.frame.actor_names)}
    torch.testing.assert_close(actor[:, at["dq_left_knee"]], 0.05 * env.state.dq[:, 3])
    torch.testing.assert_close(actor[:, at["command_sideways"]], 2 * env.commands.values[:, 1])
    names = [name for block in FRAME for name in block.entry_names(env.robot)]
    assert critic.shape[1] == len(names)
    torch.testing.assert_close(critic[:, names.index("base_mass")], env.base_mass / 30)


def test_the_common_frame_leaves_out_commands_and_gait():
    names = [block.name for block in LEGGED_FRAME]
    assert {"clock", "planar_command", "stance"}.isdisjoint(names)
    assert names[:3] == ["joint_position_from_default", "joint_velocity", "last_action"]


def ones(env):
    return torch.ones(env.num_envs, 1)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ((*FRAME, FRAME[0]), r"listed twice"),
        ((Block("x", ("x",), ones, critic_only=True),), r"the actor needs some"),
        ((Block("x", ("x",), ones, scale="speed_scale"),), r"'x'.*'speed_scale'.*not a field"),
    ],
)
def test_tables_that_cannot_be(blocks, words):
    with pytest.raises(InputError, match=words):
        Frame(blocks, VIEW, G1)


def test_blocks_that_cannot_be():
    with pytest.raises(InputError, match=r"neither \{joint\} nor \{foot\}.*write \('height',\)"):
        Block("x", "height", ones).entry_names(G1)
    with pytest.raises(InputError, match=r"'x' does not define its mirroring: give mirror=.*1 sig"):
        Block("x", ("x",), ones).mirror_rule(G1)
    env = VelocityEnv(TASKS["laptop"], 2)
    with pytest.raises(InputError, match=r"'x' has 2 entries \(a, b\).*gave \(2, 1\)"):
        Frame((Block("x", ("a", "b"), ones),), VIEW, G1).check(env)


def test_names_that_bypass_stand_for_their_entries_in_all_frames():
    task = TASKS["g1"]
    names = actor_names(task)
    for given, expected in (
        (("clock",), {"clock_sin", "clock_cos"}),
        (("command",), {"command_forward", "command_sideways", "command_yaw"}),
        (("planar_command", "base_euler"),
         {"command_forward", "command_sideways", "roll", "pitch", "yaw"}),
    ):  # fmt: skip
        found = resolve_bypass(PrismActorConfig(bypass=given), task).bypass
        assert {names[i].partition("[")[0] for i in found} == expected
        assert len(found) == 15 * len(expected) == len(set(found))
    plain = PrismActorConfig()
    assert resolve_bypass(plain, task) is plain
    assert resolve_bypass(ActorConfig(), task) == ActorConfig()


@pytest.mark.parametrize("name", ["commands", "contact", 3])
def test_unknown_names_that_bypass_list_the_blocks(name):
    with pytest.raises(InputError, match=rf"{name!r}.*clock, planar_command, .*command") as caught:
        resolve_bypass(PrismActorConfig(bypass=("clock", name)), TASKS["g1"])
    assert "joint_position_from_reference" not in str(caught.value)  # the critic's


def test_everything_cannot_bypass():
    blocks = tuple(block.name for block in frame_of(TASKS["g1"]).actor_blocks)
    resolved = resolve_bypass(PrismActorConfig(bypass=blocks), TASKS["g1"])
    with pytest.raises(InputError, match="all 705 inputs"):
        build_actor(resolved, 705, 12)
