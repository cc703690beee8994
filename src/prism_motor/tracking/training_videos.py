"""Videos of a tracking policy during training: its first clip, undisturbed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prism_motor.tracking.evaluation import Piece, TrackedPiece
from prism_motor.tracking.motions.library import find_clip
from prism_motor.tracking.motions.sampling import make_motion
from prism_motor.tracking.references import References
from prism_motor.tracking.video import TrackingFilm, TrackingVideo, film_clips
from prism_motor.train.videos import FilmingListener, try_film

if TYPE_CHECKING:
    from prism_motor.tracking.trainer import TrackingTrainer

SETTINGS = TrackingFilm(seconds=6.0, width=480, height=360)
"""Short and small."""


class TrackingVideos(FilmingListener):
    """Records a video every few updates; a failure is reported and training continues.

    Args:
        folder: Where videos go, as ``<update>.mp4``.
        trainer: The training.
        every: Updates between videos.
        say: Called with a message when a video could not be made.
        settings: What to record; of all clips that it names, the first one.
    """

    def __init__(
        self,
        folder: Path,
        trainer: TrackingTrainer,
        every: int,
        say: Callable[[str], None],
        settings: TrackingFilm = SETTINGS,
    ) -> None:
        super().__init__(folder, every, say)
        first = settings.clips or trainer.config.task.clips or ("stand",)
        self.trainer, self.settings = trainer, replace(settings, clips=first[:1])

    def film(self, update: int) -> TrackingVideo:
        """Return the video of a copy of the policy."""
        config = self.trainer.config
        policy = copy.deepcopy(self.trainer.models()["policy"]).cpu().eval()
        title = f"{config.arm}, {config.preset}, seed {config.seed}, update {update}"
        return film_clips(policy, config.task, self.settings, title, "training")[0]  # type: ignore[arg-type]


def check_videos() -> None:
    """Make a tiny video and discard it, so that problems show up before training."""
    references = References([make_motion(find_clip("stand"))])
    piece = Piece("stand", 0, 0, 3)
    still = TrackedPiece(
        piece, references.qpos[:3], np.ones(3, bool), np.zeros((3, 2, 3)), np.ones((3, 2), bool)
    )
    small = TrackingFilm(width=64, height=64, primitives=True)
    try_film(TrackingVideo(piece, lambda: still, references, 0.02, small, ""))
