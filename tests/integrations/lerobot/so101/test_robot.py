"""``so101_sim`` as LeRobot uses robots."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

from lerobot.robots import RobotConfig, make_robot_from_config
from lerobot.robots.so_follower import SO101Follower, SO101FollowerConfig

from prism_motor._checks import InputError
from prism_motor.integrations.lerobot.so101 import SO101Sim, SO101SimConfig
from prism_motor.sim.so101.twin import HOME
from prism_motor.sim.so101.units import FEATURES

HOME_ACTION = dict(zip(FEATURES, HOME.tolist(), strict=True))


def test_lerobot_makes_it_by_its_name():
    config = RobotConfig.get_choice_class("so101_sim")(id="twin")
    assert isinstance(config, SO101SimConfig)
    robot = make_robot_from_config(config)
    assert isinstance(robot, SO101Sim)
    assert (robot.name, robot.robot_type, config.type) == ("so101_sim",) * 3
    assert not robot.is_connected


def test_configs_need_no_mujoco():
    code = (
        "import sys; import prism_motor.integrations.lerobot.so101\n"
        "assert 'mujoco' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_are_those_of_the_real_arm(tmp_path, make_robot):
    pytest.importorskip("scservo_sdk", reason="feetech-servo-sdk is not installed")
    real = SO101Follower(SO101FollowerConfig(port="/dev/null", calibration_dir=tmp_path))
    twin = make_robot(connect=False)
    assert list(twin.action_features.items()) == list(real.action_features.items())
    assert list(twin.observation_features)[:6] == list(real.observation_features)
    assert twin.observation_features["wrist"] == (32, 32, 3)
    assert len(twin.cameras) == 2
    assert list(make_robot(connect=False, camera_names=["wrist"]).cameras) == ["wrist"]


def test_observations_have_the_promised_features(make_robot):
    robot = make_robot()
    seen = robot.get_observation()
    assert list(seen) == list(robot.observation_features)
    for name in ("agent", "wrist"):
        assert seen[name].shape == robot.observation_features[name]
        assert seen[name].dtype == np.uint8
        assert seen[name].std() > 5
    # The soft servos sag below home.
    assert 0 < seen["shoulder_lift.pos"] - HOME[1] < 4


def test_a_command_takes_exactly_its_share_of_simulated_time(make_robot):
    robot = make_robot(fps=20)
    for _ in range(7):
        assert robot.send_action(HOME_ACTION) == HOME_ACTION
    assert robot._station.twin.time == pytest.approx(7 / 20)


def test_same_commands_same_bits(make_robot):
    seen = []
    for _ in range(2):
        robot = make_robot(seed=5)
        for step in range(20):
            robot.send_action({**HOME_ACTION, "shoulder_lift.pos": -64 + step})
        seen.append(robot.get_observation())
        robot.disconnect()
    assert seen[0]["elbow_flex.pos"] == seen[1]["elbow_flex.pos"]
    np.testing.assert_array_equal(seen[0]["agent"], seen[1]["agent"])


def test_places_and_outcomes_for_trials(make_robot):
    robot = make_robot()
    first, second = robot.place(3), robot.place(4)
    assert first != second
    assert robot.place(3) == first
    assert set(first) == {"x", "y", "yaw"}
    assert robot.outcome()["success"] is False
    before = robot.get_observation()["agent"]
    robot.place(4)
    assert (robot.get_observation()["agent"] != before).any()


def test_whoever_places_decides_when_the_next_trial_begins(make_robot, make_leader):
    robot, leader = make_robot(), make_leader()
    where = robot.place(11)
    for _ in range(250):
        robot.send_action(leader.get_action())
    assert robot.outcome()["success"] is True  # though the arm has long been at home
    assert robot._station.twin.pose._asdict() == where


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({}, "got nothing"),
        ({**HOME_ACTION, "base.vel": 0.0}, "another robot's"),
        ({"x.vel": 1.0}, "got x.vel"),
        ({**HOME_ACTION, "gripper.pos": float("nan")}, "finite"),
    ],
)
def test_commands_of_other_robots_are_refused(make_robot, action, said):
    robot = make_robot()
    with pytest.raises(InputError, match=said):
        robot.send_action(action)
    assert robot._station.twin.time == 0


def test_one_twin_per_id(make_robot):
    robot = make_robot()
    with pytest.raises(InputError, match="already a so101_sim called 'twin'"):
        make_robot()
    make_robot(id="other")
    robot.disconnect()
    robot.connect()
    with pytest.raises(Exception, match="already connected"):
        robot.connect()
    robot.disconnect()
    with pytest.raises(Exception, match="not connected"):
        robot.get_observation()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"servos": "sof"}, "Did you mean 'soft'"),
        ({"camera_names": ["front"]}, "Unknown camera of so101_sim 'front'"),
        ({"image_size": 4}, "robot.image_size must be from 16 to 1024, got 4"),
        ({"fps": 0}, "robot.fps must be from 1 to 200"),
        ({"placement": "everywhere"}, "narrow, wide"),
    ],
)
def test_settings_are_checked_before_anything_is_built(fields, said):
    with pytest.raises(InputError, match=said):
        SO101SimConfig(**fields)


def test_an_unknown_task_is_named_with_the_nearest(make_robot):
    with pytest.raises(InputError, match="Did you mean 'mouse-click-v0'"):
        make_robot(task="mouse-click")
    make_robot()  # nothing is left behind
