"""Videos of the policy during training, recorded without affecting the training."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor.locomotion.observations import observation_size
from prism_motor.locomotion.tasks import TASKS
from prism_motor.locomotion.video import VideoConfig, WalkingVideo
from prism_motor.sim.rendering import RenderingError
from prism_motor.sim.video_files import write_video

if TYPE_CHECKING:
    from prism_motor.locomotion.trainer import WalkingTrainer

SETTINGS = VideoConfig(seconds=6.0, width=480, height=360)
"""Short and small: nominal conditions, walking forward."""


class TrainingVideos:
    """Records a video every few updates; a failure is reported and training continues.

    Args:
        folder: Where videos go, as ``<update>.mp4``.
        trainer: The training.
        every: Updates between videos.
        say: Called with a message when a video could not be made.
        settings: What to record.
    """

    def __init__(
        self,
        folder: Path,
        trainer: WalkingTrainer,
        every: int,
        say: Callable[[str], None],
        settings: VideoConfig = SETTINGS,
    ) -> None:
        self.folder, self.trainer, self.every = folder, trainer, every
        self.say, self.settings = say, settings

    def __call__(self, row: dict[str, float]) -> None:
        """Record a video after an update, if one is due."""
        update = int(row["update"])
        if update % self.every:
            return
        try:
            with torch.random.fork_rng(devices=[]):
                self._film(update)
        except Exception as error:  # hours of training are worth more than a video
            self.say(f"No video of update {update}: {error} Training continues.")

    def _film(self, update: int) -> None:
        config = self.trainer.config
        policy = self.trainer.ppo._raw_actor.as_onnx(verbose=False).cpu().eval()  # a copy
        title = f"{config.arm}, {config.preset}, seed {config.seed}, update {update}"
        film = WalkingVideo(policy, config.task, self.settings, title)
        with closing(iter(film)) as pictures:
            write_video(self.folder / f"{update:08d}.mp4", pictures, film.rate)


def check_videos() -> None:
    """Make a tiny video and discard it, so that problems show up before training."""
    task = TASKS["laptop"]
    _, joints = observation_size(task)

    def stand(observations: Tensor) -> Tensor:
        return torch.zeros(len(observations), joints)

    film = WalkingVideo(stand, task, VideoConfig(seconds=0.1, width=64, height=64), "")
    try:
        with tempfile.TemporaryDirectory() as folder, closing(iter(film)) as pictures:
            write_video(Path(folder) / "film.mp4", pictures, film.rate)
    except OSError:
        raise
    except Exception as error:  # ffmpeg fails in its own ways
        raise RenderingError(f"Videos cannot be written on this machine: {error}") from error
