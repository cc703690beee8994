"""Pictures of the twin's cameras on their way from ``prism so101 bus`` to LeRobot.

The two are different processes, so every picture is a small file that the next one replaces.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_HEAD = struct.Struct("<dqii")
"""Time, number, height and width."""


class CameraFrame(NamedTuple):
    """A picture with the moment at which it was taken."""

    taken: float
    """Seconds since the epoch."""
    number: int
    """Counts the pictures of a camera."""
    image: NDArray[np.uint8]
    """Height x width x 3, RGB."""


def default_folder() -> Path:
    """Return where ports and pictures are if nobody says otherwise."""
    return Path(tempfile.gettempdir()) / "prism-so101"


def write_frame(folder: Path, camera: str, number: int, image: NDArray[np.uint8]) -> None:
    """Replace a camera's picture, whole or not at all."""
    height, width, _ = image.shape
    waiting = folder / f".{camera}.frame"
    waiting.write_bytes(_HEAD.pack(time.time(), number, height, width) + image.tobytes())
    os.replace(waiting, frame_file(folder, camera))


def read_frame(folder: Path, camera: str) -> CameraFrame | None:
    """Return a camera's latest picture, if there is one."""
    try:
        data = frame_file(folder, camera).read_bytes()
    except FileNotFoundError:
        return None
    taken, number, height, width = _HEAD.unpack_from(data)
    image = np.frombuffer(data, np.uint8, offset=_HEAD.size).reshape(height, width, 3)
    return CameraFrame(taken, number, image.copy())


def frame_file(folder: Path, camera: str) -> Path:
    """Return the file of a camera's pictures."""
    return folder / f"{camera}.frame"
