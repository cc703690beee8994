"""Robots of LeRobot by their flags, and what is said when one is not there."""

import pytest

from prism_motor._checks import InputError

CAMERAS = "{top: {type: opencv, index_or_path: 97, width: 640, height: 480, fps: 30}}"


@pytest.fixture
def robots():
    pytest.importorskip("lerobot", reason="LeRobot is not installed")
    from prism_motor.integrations.lerobot import robots

    return robots


def test_flags_mean_what_they_mean_to_lerobot(robots):
    flags = ["--robot.type=so101_follower", "--robot.port=/dev/nowhere", "--robot.id=mine"]
    config = robots.parse_robot([*flags, f"--robot.cameras={CAMERAS}"])
    assert (config.port, config.id, config.use_degrees) == ("/dev/nowhere", "mine", True)
    assert config.cameras["top"].width == 640
    data = robots.encode_robot(config)
    assert data["cameras"]["top"]["fps"] == 30
    assert data["type"] in ("so100_follower", "so101_follower")  # one class has both names


def test_a_missing_port_is_one_message(robots, tmp_path):
    pytest.importorskip("scservo_sdk", reason="no driver of the motors")
    flags = ["--robot.type=so101_follower", "--robot.port=/dev/nowhere"]
    config = robots.parse_robot([*flags, f"--robot.calibration_dir={tmp_path}"])
    robot = robots.make_robot(config)
    with pytest.raises(robots.RobotError, match="'/dev/nowhere'") as raised:
        robots.connect_robot(robot)
    assert "\n" not in str(raised.value)


def test_unknown_robots_and_packages_are_refused(robots):
    with pytest.raises(InputError, match="Did you mean 'so101_follower'"):
        robots.parse_robot(["--robot.type=so101_folower"])
    with pytest.raises(InputError, match="no_such_package"):
        robots.parse_robot(["--robot.discover_packages_path=no_such_package"])
