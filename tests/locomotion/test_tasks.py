"""Tasks on robots of one's own, and tasks of one's own."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.locomotion.contract import make_contract
from prism_motor.locomotion.domain import LOCOMOTION
from prism_motor.locomotion.env import VelocityEnv, check_task, make_env
from prism_motor.locomotion.evaluation import Protocol, evaluate
from prism_motor.locomotion.mirror import Mirror, augment, check_mirror, mirror_frames
from prism_motor.locomotion.observations import actor_names, observation_size
from prism_motor.locomotion.rewards import LeggedStep, Step
from prism_motor.locomotion.task import GaitConfig, RewardConfig
from prism_motor.locomotion.tasks import HUMANOID_GYM_WEIGHTS, TASKS, register_task, velocity_task
from prism_motor.sim.robots import make_robot

NAMES = ("hopper-walk", "hopper-hop")


@pytest.fixture(autouse=True)
def _hopper(plugin):
    plugin("my_velocity_task")
    plugin("my_task")


def walk(env, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(steps):
        action = 0.5 * torch.randn(env.num_envs, env.num_actions, generator=generator)
        rows.append(env.step(action))
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_a_hopper_runs_falls_and_starts_again(name):
    env = make_env(TASKS[name], 8, seed=1)
    rows = walk(env, 300)
    for observations, rewards, _, _ in rows:
        assert torch.isfinite(observations["policy"]).all()
        assert torch.isfinite(observations["critic"]).all()
        assert torch.isfinite(rewards).all()
    assert sum(int(done.sum()) for _, _, done, _ in rows) > 8
    assert sum(float(rewards.sum()) for _, rewards, _, _ in rows) > 1
    inputs, actions = observation_size(TASKS[name])
    assert rows[0][0]["policy"].shape == (8, inputs)
    assert actions == env.num_actions == 4
    assert len(actor_names(TASKS[name])) == inputs


@pytest.mark.parametrize("name", [*NAMES, "laptop"])
def test_any_task_continues_exactly_from_its_saved_state(name):
    env = make_env(TASKS[name], 6, seed=3)
    walk(env, 20)
    other = make_env(TASKS[name], 6, seed=3)
    other.load_state_dict(env.state_dict())
    for one, two in zip(walk(env, 40, seed=1), walk(other, 40, seed=1), strict=True):
        assert torch.equal(one[0]["policy"], two[0]["policy"])
        assert torch.equal(one[0]["critic"], two[0]["critic"])
        assert torch.equal(one[1], two[1])


def test_a_task_without_commands_has_survival_return_and_length():
    task = TASKS["hopper-hop"]
    task = replace(task, terminations=replace(task.terminations, duration=0.5))
    episodes = evaluate(
        lambda x: torch.zeros(len(x), 4), task, "nominal", seed=1, protocol=Protocol(3, 1)
    )
    for one in episodes:
        assert one.survived
        assert one.steps == 26
        assert one.episode_return > 0
        assert (one.linear_error, one.yaw_error, one.speed_ratio) == (None, None, None)
    text = LOCOMOTION.evaluation_table({"nominal": episodes})
    assert next(line for line in text.splitlines() if "linear" in line).split()[-1] == "none"


def test_rewards_see_what_the_task_has():
    hop, still = make_env(TASKS["hopper-hop"], 2), make_env(TASKS["hopper-walk"], 2)
    walk(hop, 1)
    walk(still, 1)
    assert type(hop.last_step) is LeggedStep
    assert type(still.last_step) is Step
    assert isinstance(still, VelocityEnv)
    assert set(hop.measure()) < set(still.measure()) == {
        "double_support", "linear_error", "yaw_error",
    }  # fmt: skip


def test_the_rhythm_is_what_its_block_says():
    env = make_env(replace(TASKS["hopper-hop"], period=0.4), 2)
    walk(env, 5)
    names = actor_names(env.cfg)
    seen = dict(zip(names, env.get_observations()["policy"][0].tolist(), strict=True))
    angle = 2 * np.pi * 5 * 0.02 / 0.4
    assert seen["beat_sin[t]"] == pytest.approx(np.sin(angle), abs=1e-5)
    assert seen["beat_cos[t]"] == pytest.approx(np.cos(angle), abs=1e-5)
    contract = make_contract(env.cfg, {"policy_sha256": ""})
    assert contract["observation"]["blocks"][-1]["source"] == "rhythm"
    assert contract["observation"]["size"] == len(names)
    assert np.count_nonzero(contract["gait"]["gains"]) == 0
    assert contract["command"]["ranges"]["forward"] == [0.0, 0.0]


@pytest.mark.parametrize("name", NAMES)
def test_one_foot_is_its_own_mirror_image(name):
    env = make_env(TASKS[name], 3)
    mirror = Mirror(env.frame)
    for key, rule in (("policy", mirror.actor), ("critic", mirror.critic)):
        values = torch.randn_like(env.get_observations()[key])
        assert torch.equal(mirror_frames(mirror_frames(values, rule), rule), values)
    both, actions = augment(env=env, obs=env.get_observations(), actions=torch.ones(3, 4))
    assert both.batch_size[0] == 6
    assert actions[3].tolist() == [-1.0, 1.0, 1.0, 1.0]


def test_mirroring_what_has_no_mirror_image_is_refused_early(monkeypatch):
    from prism_motor.sim import robots

    lame = replace(make_robot("hopper"), name="lame", mirror=None, mirror_sign=None)
    monkeypatch.setitem(robots.ROBOTS._entries, "lame", lambda: lame)
    with pytest.raises(InputError, match=r"'lame' does not define its mirroring.*mirror=.*ppo"):
        check_mirror(replace(TASKS["hopper-walk"], robot="lame"))
    check_mirror(TASKS["hopper-walk"])


def test_a_velocity_task_follows_from_the_robot():
    hopper, dog = velocity_task("hopper"), velocity_task("quadruped")
    assert hopper.start_height == pytest.approx(make_robot("hopper").stand_height + 0.01)
    assert hopper.gait.offsets == (0.0,)
    assert {"feet_distance", "knee_distance", "joint_pos"}.isdisjoint(hopper.rewards.weights)
    assert dog.gait.offsets == (0.0, 0.5, 0.5, 0.0)
    assert {"feet_distance", "knee_distance"} <= set(dog.rewards.weights)
    for task in (hopper, dog):
        check_task(task)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gait": GaitConfig()}, r"gait.offsets has 2 phases, but hopper has 1 feet \(foot\)"),
        ({"gait": GaitConfig(offsets=(0.0,), swing=((7, 0, 1.0),))}, r"gait.swing names joint 7;"),
        (
            {"gait": GaitConfig(offsets=(0.0,), stride=((7, 0, 0, 1.0),))},
            r"gait.stride names joint 7;",
        ),
        (
            {"rewards": RewardConfig(weights={"feet_distance": 1.0})},
            r"'feet_distance' needs .*pair",
        ),
        (
            {"rewards": RewardConfig(weights={"knee_distance": 1.0})},
            r"'knee_distance' needs .*knee",
        ),
        (
            {"rewards": RewardConfig(weights={"default_joint_pos": 1.0})},
            r"abduction_joints names joint 8; hopper has joints 0 to 3: hip_roll",
        ),
        ({"rewards": RewardConfig(weights={"hopp": 1.0})}, r"term 'hopp'.*'hop'.*--plugin"),
    ],
)
def test_what_does_not_fit_the_robot_is_refused_before_anything_is_built(changes, words):
    task = replace(TASKS["hopper-walk"], **changes)
    with pytest.raises(InputError, match=words):
        check_task(task)
    with pytest.raises(InputError, match=words):
        make_env(task, 2)


def test_a_task_without_commands_refuses_terms_and_actions_that_need_them():
    hop = TASKS["hopper-hop"]
    with pytest.raises(InputError, match=r"'tracking_lin_vel' needs a task with velocity commands"):
        check_task(replace(hop, rewards=RewardConfig(weights={"tracking_lin_vel": 1.0})))
    with pytest.raises(
        InputError, match=r"on_reference adds actions to a gait.*'hop' have no gait"
    ):
        check_task(replace(hop, actions=replace(hop.actions, on_reference=True)))


def test_tasks_are_registered_once_and_built_in_ones_stay():
    register_task("hopper-walk", TASKS["hopper-walk"])
    with pytest.raises(InputError, match=r"'hopper-walk' is already registered"):
        register_task("hopper-walk", TASKS["hopper-hop"])
    with pytest.raises(InputError, match=r"built-in task called 'laptop'"):
        register_task("laptop", TASKS["g1"])
    with pytest.raises(
        InputError, match=r"Unknown task 'lap-top'.*Did you mean 'laptop'.*--plugin"
    ):
        TASKS["lap-top"]
    assert set(TASKS["g1"].rewards.weights) == set(HUMANOID_GYM_WEIGHTS)
