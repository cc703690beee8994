"""Pictures from the emulated arm to LeRobot's own follower."""

import time

import numpy as np
import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

from lerobot.cameras import CameraConfig
from lerobot.cameras.utils import make_cameras_from_configs

from prism_motor._checks import InputError
from prism_motor.integrations.feetech.frames import read_frame, write_frame
from prism_motor.integrations.lerobot.so101 import SO101SimCamera, SO101SimCameraConfig


@pytest.fixture
def camera(tmp_path):
    config = CameraConfig.get_choice_class("so101_sim")(
        name="wrist", folder=tmp_path, width=8, height=8, fps=30
    )
    return make_cameras_from_configs({"wrist": config})["wrist"]


def picture(value):
    return np.full((8, 8, 3), value, np.uint8)


def test_pictures_arrive_as_they_were(tmp_path):
    assert read_frame(tmp_path, "agent") is None
    image = np.random.default_rng(0).integers(0, 255, (6, 5, 3), np.uint8)
    write_frame(tmp_path, "agent", 7, image)
    frame = read_frame(tmp_path, "agent")
    np.testing.assert_array_equal(frame.image, image)
    assert frame.number == 7
    assert abs(time.time() - frame.taken) < 5


def test_reading_waits_for_a_new_picture(camera, tmp_path):
    assert isinstance(camera, SO101SimCamera)
    write_frame(tmp_path, "wrist", 1, picture(1))
    camera.connect()
    assert camera.read().max() == 1
    assert camera.async_read().max() == 1
    with pytest.raises(TimeoutError, match="no new picture in 20 ms"):
        camera.async_read(timeout_ms=20)
    write_frame(tmp_path, "wrist", 2, picture(2))
    assert camera.async_read().max() == 2
    assert camera.read_latest().max() == 2
    time.sleep(0.05)
    with pytest.raises(TimeoutError, match="ms old; allowed are 10 ms"):
        camera.read_latest(max_age_ms=10)
    camera.disconnect()


def test_a_camera_without_a_bus_says_what_to_start(camera):
    with pytest.raises(InputError, match=r"no picture of the camera 'wrist'.*prism so101 bus"):
        camera.connect()


def test_another_size_is_refused(camera, tmp_path):
    write_frame(tmp_path, "wrist", 1, np.zeros((9, 9, 3), np.uint8))
    with pytest.raises(InputError, match="is 9 x 9, and the robot expects 8 x 8"):
        camera.connect()
    with pytest.raises(InputError, match="square"):
        SO101SimCameraConfig(name="wrist", width=640, height=480, fps=30)
    with pytest.raises(InputError, match="Unknown camera of so101_sim 'front'"):
        SO101SimCameraConfig(name="front", width=8, height=8, fps=30)
