import pytest
import torch

from prism_motor.analysis.explain.names import GROUPS, InputName, name_inputs, role_of
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.observations import actor_names
from prism_motor.locomotion.tasks import TASKS


@pytest.mark.parametrize("preset", ["paper", "laptop", "quadruped"])
def test_names_follow_the_observation_index_by_index(preset):
    task = TASKS[preset]
    env = VelocityEnv(task, 1)
    names = name_inputs(task)
    assert len(names) == env.get_observations()["policy"].shape[1]
    joints = [joint.name for joint in env.robot.joints]
    assert [name.key for name in names] == actor_names(task)
    layout = [("gait clock", part) for part in ("sin", "cos")]
    layout += [("command", part) for part in ("forward", "sideways", "yaw")]
    for group in ("joint position", "joint velocity", "last action"):
        layout += [(group, joint.replace("_", " ")) for joint in joints]
    layout += [("angular velocity", axis) for axis in "xyz"]
    layout += [("orientation", part) for part in ("roll", "pitch", "yaw")]
    frames = task.observations.actor_frames
    for index, name in enumerate(names):
        frame, place = divmod(index, len(layout))
        assert (name.group, name.part, name.lag) == (*layout[place], frames - 1 - frame)


def test_a_value_put_into_the_task_appears_under_its_name():
    """Change one thing at a time in a noise-free environment and see which names change."""
    from dataclasses import replace

    from prism_motor.locomotion.conditions import find_condition

    task = find_condition("nominal").apply(TASKS["laptop"])
    task = replace(task, start_joint_noise=0.0)
    names = name_inputs(task)

    def changed(edit):
        env = VelocityEnv(task, 1)
        env.commands.values[:] = 0.0
        before = env.get_observations()["policy"].clone()
        edit(env)
        env.actor_history.reset(torch.tensor([0]))
        env._observe()
        after = env.get_observations()["policy"]
        different = ((before - after).abs() > 1e-6)[0].nonzero().flatten().tolist()
        return {str(names[i]) for i in different if names[i].lag == 0} - {"command yaw (t)"}

    def set_state(name, column):
        def edit(env):
            value = getattr(env.state, name).clone()
            value[:, column] += 0.1
            env.state = replace(env.state, **{name: value})

        return edit

    base = changed(lambda env: None)
    assert changed(set_state("q", 3)) - base == {"q L knee (t)"}
    assert changed(set_state("dq", 9)) - base == {"dq R knee (t)"}
    assert changed(set_state("angular_velocity", 1)) - base == {"gyro y (t)"}
    assert changed(set_state("euler", 0)) - base == {"roll (t)"}
    assert changed(lambda env: env.actions[0].index_fill_(1, torch.tensor([10]), 1.0)) - base == {
        "action R ankle pitch (t)"
    }


def name(group, part="left knee", lag=0):
    return InputName("", group, part, lag)


@pytest.mark.parametrize(
    ("one", "other", "role"),
    [
        (name("joint velocity"), name("joint velocity", lag=1), "velocity memory"),
        (
            name("joint velocity", "left ankle pitch"),
            name("joint velocity", "right hip roll", lag=3),
            "velocity memory",
        ),
        (name("joint velocity"), name("joint velocity", "right knee"), "joint-velocity coupling"),
        (name("joint velocity"), name("joint velocity"), "joint-velocity coupling"),
        (name("joint velocity"), name("joint position", lag=2), "state-velocity coupling"),
        (name("command", "yaw"), name("orientation", "yaw"), "command-state coupling"),
        (name("last action"), name("joint velocity"), "action-state coupling"),
        (name("gait clock", "sin"), name("last action"), "gait-phase coupling"),
    ],
)
def test_roles_of_the_paper_in_either_order(one, other, role):
    assert role_of([one, other]) == role_of([other, one]) == role


def test_every_pair_of_groups_has_a_role():
    assert all(role_of([name(a), name(b)]) for a in GROUPS for b in GROUPS)


def test_names_read_well():
    names = [str(name) for name in name_inputs(TASKS["laptop"])]
    assert names[0] == "clock sin (t-4)"
    assert names[-1] == "yaw (t)"
    assert "dq L ankle pitch (t-1)" in names
    assert len(set(names)) == len(names)
