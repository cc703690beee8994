"""Films of the policy while it trains, made beside the training and without a trace in it."""

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
from prism_motor.locomotion.video import Film, VideoConfig
from prism_motor.sim.rendering import RenderingError
from prism_motor.sim.video_files import write_video

if TYPE_CHECKING:
    from prism_motor.locomotion.trainer import WalkingTrainer

SETTINGS = VideoConfig(seconds=6.0, width=480, height=360)
"""Short and small: nominal conditions, walking forward."""


class Films:
    """Films the policy every few updates; a film that fails is reported and training goes on.

    Args:
        folder: Where films go, as ``<update>.mp4``.
        trainer: The training.
        every: Updates between films.
        say: Told when a film could not be made.
        settings: What to film.
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
        """Film after an update, if it is time."""
        update = int(row["update"])
        if update % self.every:
            return
        try:
            with torch.random.fork_rng(devices=[]):
                self._film(update)
        except Exception as error:  # hours of training are worth more than a film
            self.say(f"No film of update {update}: {error} Training goes on.")

    def _film(self, update: int) -> None:
        config = self.trainer.config
        policy = self.trainer.ppo._raw_actor.as_onnx(verbose=False).eval()  # a copy
        title = f"{config.arm}, {config.preset}, seed {config.seed}, update {update}"
        film = Film(policy, config.task, self.settings, title)
        with closing(iter(film)) as pictures:
            write_video(self.folder / f"{update:08d}.mp4", pictures, film.rate)


def check_films() -> None:
    """Make a tiny film and throw it away, so that what is missing is known before training."""
    task = TASKS["laptop"]
    _, joints = observation_size(task)

    def stand(observations: Tensor) -> Tensor:
        return torch.zeros(len(observations), joints)

    film = Film(stand, task, VideoConfig(seconds=0.1, width=64, height=64), "")
    try:
        with tempfile.TemporaryDirectory() as folder, closing(iter(film)) as pictures:
            write_video(Path(folder) / "film.mp4", pictures, film.rate)
    except OSError:
        raise
    except Exception as error:  # ffmpeg fails in its own ways
        raise RenderingError(f"Videos cannot be written on this machine: {error}") from error
