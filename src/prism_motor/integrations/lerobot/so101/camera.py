"""Camera ``so101_sim``: what the twin behind ``prism so101 bus`` sees."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from lerobot.cameras.camera import Camera
from lerobot.utils.decorators import check_if_already_connected, check_if_not_connected
from numpy.typing import NDArray

from prism_motor._checks import InputError
from prism_motor.integrations.feetech.frames import CameraFrame, default_folder, read_frame
from prism_motor.integrations.lerobot.so101.configuration import CAMERAS, SO101SimCameraConfig

_FRESH = 2.0
"""Seconds after which a picture must have been left behind by a bus that is gone."""
_POLL = 0.002


class SO101SimCamera(Camera):
    """A camera of the emulated arm.

    Args:
        config: Which camera, and where its pictures are.
    """

    def __init__(self, config: SO101SimCameraConfig) -> None:
        super().__init__(config)
        self.config = config
        self._connected = False
        self._seen = -1

    @property
    def is_connected(self) -> bool:
        """Whether it was connected."""
        return self._connected

    @staticmethod
    def find_cameras() -> list[dict[str, Any]]:
        """Return the cameras of the bus that runs, if one does."""
        there = [(name, read_frame(default_folder(), name)) for name in CAMERAS]
        return [
            {"type": "so101_sim", "id": name, "name": name, "size": frame.image.shape[0]}
            for name, frame in there
            if frame is not None
        ]

    @check_if_already_connected
    def connect(self, warmup: bool = True) -> None:
        """Check that pictures of the right size arrive."""
        frame = self._latest()
        height, width = frame.image.shape[:2]
        if (self.height, self.width) != (height, width):
            raise InputError(
                f"The camera {self.config.name!r} is {width} x {height}, and the robot expects "
                f"{self.width} x {self.height}. Start prism so101 bus with "
                f"--image-size {self.width}, or change width and height of the camera."
            )
        self._connected = True

    @check_if_not_connected
    def read(self) -> NDArray[np.uint8]:
        """Return the latest picture."""
        return self._latest().image

    @check_if_not_connected
    def async_read(self, timeout_ms: float = 200) -> NDArray[np.uint8]:
        """Return a picture that was not returned before; wait for one if needed."""
        end = time.monotonic() + timeout_ms / 1000
        while (frame := self._latest()).number == self._seen:
            if time.monotonic() > end:
                raise TimeoutError(
                    f"The camera {self.config.name!r} sent no new picture in {timeout_ms:g} ms."
                )
            time.sleep(_POLL)
        self._seen = frame.number
        return frame.image

    @check_if_not_connected
    def read_latest(self, max_age_ms: int = 500) -> NDArray[np.uint8]:
        """Return the latest picture, unless it is too old."""
        frame = self._latest()
        age = 1000 * (time.time() - frame.taken)
        if age > max_age_ms:
            raise TimeoutError(
                f"The latest picture of camera {self.config.name!r} is {age:.0f} ms old; allowed "
                f"are {max_age_ms} ms. Is prism so101 bus too slow, or gone?"
            )
        return frame.image

    @check_if_not_connected
    def disconnect(self) -> None:
        """Let go."""
        self._connected = False

    def _latest(self) -> CameraFrame:
        frame = read_frame(self.config.folder, self.config.name)
        if frame is None or time.time() - frame.taken > _FRESH:
            raise InputError(
                f"There is no picture of the camera {self.config.name!r} in {self.config.folder}. "
                "Start it first: prism so101 bus"
            )
        return frame
