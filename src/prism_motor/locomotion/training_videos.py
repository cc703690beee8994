"""Videos of the policy during training, recorded without affecting the training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor.locomotion.observations import observation_size
from prism_motor.locomotion.tasks import TASKS
from prism_motor.locomotion.video import VideoConfig, WalkingVideo
from prism_motor.train.videos import FilmingListener, try_film

if TYPE_CHECKING:
    from prism_motor.locomotion.trainer import WalkingTrainer

SETTINGS = VideoConfig(seconds=6.0, width=480, height=360)
"""Short and small: nominal conditions, walking forward."""


class WalkingVideos(FilmingListener):
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
        super().__init__(folder, every, say)
        self.trainer, self.settings = trainer, settings

    def film(self, update: int) -> WalkingVideo:
        """Return the video of a copy of the actor."""
        config = self.trainer.config
        policy = self.trainer.ppo._raw_actor.as_onnx(verbose=False).cpu().eval()  # a copy
        title = f"{config.arm}, {config.preset}, seed {config.seed}, update {update}"
        return WalkingVideo(policy, config.task, self.settings, title)


def check_videos() -> None:
    """Make a tiny video and discard it, so that problems show up before training."""
    task = TASKS["laptop"]
    _, joints = observation_size(task)

    def stand(observations: Tensor) -> Tensor:
        return torch.zeros(len(observations), joints)

    try_film(WalkingVideo(stand, task, VideoConfig(seconds=0.1, width=64, height=64), ""))
