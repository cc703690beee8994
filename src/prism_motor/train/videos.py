"""Videos of the policy during training, recorded without affecting the training."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from prism_motor.sim.rendering import RenderingError
from prism_motor.sim.video_files import write_video

if TYPE_CHECKING:
    from prism_motor.protocols import Film


class FilmingListener(ABC):
    """Records a video every few updates; a failure is reported and training continues.

    Args:
        folder: Where videos go, as ``<update>.mp4``.
        every: Updates between videos.
        say: Called with a message when a video could not be made.
    """

    def __init__(self, folder: Path, every: int, say: Callable[[str], None]) -> None:
        self.folder, self.every, self.say = folder, every, say

    @abstractmethod
    def film(self, update: int) -> Film:
        """Return the video of the policy as it is now."""

    def __call__(self, row: dict[str, float]) -> None:
        """Record a video after an update, if one is due."""
        update = int(row["update"])
        if update % self.every:
            return
        try:
            with torch.random.fork_rng(devices=[]):
                write_film(self.folder / f"{update:08d}.mp4", self.film(update))
        except Exception as error:  # hours of training are worth more than a video
            self.say(f"No video of update {update}: {error} Training continues.")


def write_film(file: Path, film: Film) -> None:
    """Make a video and write it; what it has opened is closed even if that fails."""
    pictures: Any = iter(film)
    with closing(pictures):
        write_video(file, pictures, film.rate)


def try_film(film: Film) -> None:
    """Make a tiny video and discard it, so that problems show up before training."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            write_film(Path(folder) / "film.mp4", film)
    except OSError:
        raise
    except Exception as error:  # ffmpeg fails in its own ways
        raise RenderingError(f"Videos cannot be written on this machine: {error}") from error
