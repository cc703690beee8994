"""Policies and datasets of another robot, unit or rate are refused in one sentence."""

import json
import sys

import numpy as np
import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

from safetensors.numpy import save_file

from prism_motor._checks import InputError
from prism_motor.integrations.lerobot.so101.command_line import (
    LeRobotCommand,
    check_command_line,
)
from prism_motor.integrations.lerobot.so101.compatibility import (
    check_dataset,
    check_policy,
    check_units,
)
from prism_motor.sim.so101.twin import HOME
from prism_motor.sim.so101.units import ACTION_HIGH, ACTION_LOW, FEATURES, to_radians

LOW = HOME - np.array([5, 3, 10, 30, 0, 0])
HIGH = HOME + np.array([8, 50, 40, 1, 0, 3])


@pytest.fixture
def policy(tmp_path):
    """A folder with what is checked of a policy."""

    def make(low=LOW, high=HIGH, joints=6, cameras=("agent", "wrist"), stats=True):
        inputs = {"observation.state": {"type": "STATE", "shape": [joints]}}
        inputs |= {
            f"observation.images.{name}": {"type": "VISUAL", "shape": [3, 96, 96]}
            for name in cameras
        }
        outputs = {"action": {"type": "ACTION", "shape": [joints]}}
        config = {"type": "diffusion", "input_features": inputs, "output_features": outputs}
        (tmp_path / "config.json").write_text(json.dumps(config))
        if stats:
            values = {
                f"{name}.{end}": np.asarray(value, dtype=np.float32)
                for name in ("observation.state", "action")
                for end, value in (("min", low), ("max", high))
            }
            save_file(
                values, tmp_path / "policy_preprocessor_step_3_normalizer_processor.safetensors"
            )
        return tmp_path

    return make


@pytest.fixture
def dataset(tmp_path):
    """A folder with what is checked of a dataset."""

    def make(fps=30, robot="so_follower", names=FEATURES, low=LOW, high=HIGH):
        feature = {"dtype": "float32", "shape": [len(names)], "names": list(names)}
        features = {"observation.state": feature, "action": feature}
        meta = tmp_path / "meta"
        meta.mkdir(exist_ok=True)
        (meta / "info.json").write_text(
            json.dumps({"fps": fps, "robot_type": robot, "features": features})
        )
        ends = {"min": np.asarray(low).tolist(), "max": np.asarray(high).tolist()}
        (meta / "stats.json").write_text(json.dumps({"action": ends, "observation.state": ends}))
        return tmp_path

    return make


def test_what_fits_is_let_through(policy, dataset):
    check_policy(policy(), ("agent", "wrist"))
    check_policy(policy(stats=False), ("agent", "wrist", "third"))
    check_dataset(dataset(), 30)
    check_dataset(dataset(robot=None), 30)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"joints": 7}, r"observation.state of shape \(7,\).*6 joints: it is for another robot"),
        ({"cameras": ("front",)}, "needs the cameras front, and the robot has agent, wrist"),
        ({"low": to_radians(LOW), "high": to_radians(HIGH)}, "radians or normalised"),
        ({"high": [10, 30, 20, 100, 5, 90]}, "wrist_flex stops at 100.*use_degrees=false"),
        ({"high": [10, 99, 140, 20, 5, 90]}, "elbow_flex goes from .* to 140.0, and the arm"),
        ({"low": np.full(6, -1.0), "high": np.ones(6)}, "radians or normalised"),
    ],
)
def test_policies_of_other_robots_and_units(policy, fields, said):
    with pytest.raises(InputError, match=said):
        check_policy(policy(**fields), ("agent", "wrist"))


def test_a_folder_that_is_no_policy(tmp_path):
    with pytest.raises(InputError, match="not a policy of LeRobot"):
        check_policy(tmp_path, ())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"fps": 20}, "has 20 frames a second, and the robot takes 30.*--robot.fps=20"),
        ({"robot": "koch_follower"}, "was recorded on koch_follower, not on an SO-101"),
        ({"names": FEATURES[::-1]}, "has observation.state of gripper.pos"),
        ({"names": ("x", "y")}, "another robot"),
        ({"low": [-100, -90, 10, 10, 0, 0]}, "shoulder_pan stops at 100"),
    ],
)
def test_datasets_of_other_robots_units_and_rates(dataset, fields, said):
    with pytest.raises(InputError, match=said):
        check_dataset(dataset(**fields), 30)


def test_units_are_judged_by_every_joint():
    check_units("It", "action", ACTION_LOW, ACTION_HIGH)
    check_units("It", "action", ACTION_LOW - 4, ACTION_HIGH + 4)  # arms differ
    with pytest.raises(InputError, match=r"gripper goes from 0.0 to 160.0"):
        check_units("It", "action", LOW, [*HIGH[:5], 160])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["pytest"], LeRobotCommand(30)),
        (["lerobot-teleoperate"], LeRobotCommand(60)),
        (["lerobot-teleoperate", "--fps=20"], LeRobotCommand(20)),
        (["lerobot-record", "--dataset.repo_id=a/b", "--dataset.fps=15"], LeRobotCommand(15, 120)),
        (
            ["lerobot_record.py", "--dataset.repo_id=a/b", "--dataset.episode_time_s=5",
             "--dataset.reset_time_s=0"],
            LeRobotCommand(30, 5),
        ),
        (["lerobot-rollout", "--fps=30.0", "--duration=5"], LeRobotCommand(30)),
    ],
)  # fmt: skip
def test_the_rate_is_that_of_the_command(monkeypatch, command, expected):
    monkeypatch.setattr(sys, "argv", command)
    assert check_command_line(None, ()) == expected


def test_a_rate_that_was_asked_for_must_be_that_of_the_command(monkeypatch, dataset):
    monkeypatch.setattr(sys, "argv", ["lerobot-record", "--dataset.fps=20"])
    with pytest.raises(InputError, match=r"takes a command for 1/30 s, but --dataset.fps=20"):
        check_command_line(30, ())
    assert check_command_line(20, ()).fps == 20
    folder = dataset(fps=50)
    monkeypatch.setattr(sys, "argv", ["lerobot-replay", f"--dataset.root={folder}"])
    assert check_command_line(None, ()).fps == 50
    with pytest.raises(InputError, match=r"has 50 frames a second. Use --robot.fps=50"):
        check_command_line(30, ())


def test_the_twin_does_not_connect_for_a_policy_that_does_not_fit(monkeypatch, policy, make_robot):
    folder = policy(cameras=("agent", "front"))
    monkeypatch.setattr(sys, "argv", ["lerobot-record", f"--policy.path={folder}"])
    with pytest.raises(InputError, match="front is missing"):
        make_robot()
