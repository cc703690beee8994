"""Videos of a robot that tracks a clip, with the clip as a translucent ghost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from prism_motor._checks import check_choice
from prism_motor._ranges import Checked, Seed, above, between
from prism_motor.tracking.conditions import CONDITIONS
from prism_motor.tracking.evaluation import Piece, TrackedPiece, policy_controller, track
from prism_motor.tracking.metrics import earth_movers_distance
from prism_motor.tracking.motions.pictures import PictureConfig, draw_states
from prism_motor.tracking.references import References, load_references

if TYPE_CHECKING:
    from prism_motor.tracking.policy import TrackingPolicy
    from prism_motor.tracking.task import TrackingTask

_FRAME_RATE = 25.0
"""Approximate pictures per second: one is drawn every few control steps."""
_ASIDE = 0.9
"""How far beside the robot its ghost is drawn, m."""
_MEASURED_EVERY = 5
"""Pictures between measurements of the EMD, which takes longer the longer the video is."""


@dataclass(frozen=True)
class TrackingFilm(Checked, section="--"):
    """What videos of a tracking policy show, one per clip."""

    clips: tuple[str, ...] = ()
    """Clips to track: names of shipped ones, files, or folders; default: those of the training."""
    condition: str = "nominal"
    """One of nominal, low-friction, payload, training."""
    seconds: Annotated[float, above(0, 600)] = 10.0
    """Longest video; what a clip has beyond it is left out."""
    ghost: Literal["beside", "place", "none"] = "beside"
    """Where the clip is shown, as a translucent robot: beside the robot, in its own place, or
    nowhere."""
    width: Annotated[int, between(64, 3840)] = 640
    """Width in pixels, even."""
    height: Annotated[int, between(64, 3840)] = 480
    """Height in pixels, even."""
    azimuth: Annotated[float, between(-360, 360)] = 140.0
    """Viewing direction, degrees; 180 sees a robot that faces 0 from the front."""
    seed: Seed = 1
    """Seed of whatever is random under the condition."""
    primitives: bool = False
    """Draw simple shapes even if a package with meshes of the robot is installed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("condition", self.condition, CONDITIONS)
        _ = self.pictures

    @property
    def pictures(self) -> PictureConfig:
        """What pictures look like."""
        return PictureConfig(
            width=self.width, height=self.height, azimuth=self.azimuth, primitives=self.primitives
        )


class TrackingVideo:
    """Pictures of one robot that tracks a clip; iterate over it once.

    Args:
        piece: What is tracked.
        simulate: Returns what the robot does; called once, when that is needed.
        references: The clips.
        dt: Seconds per control step.
        config: What to show.
        title: First line of every picture.
        name: Stem of its file's name.

    Attributes:
        rate: Pictures per second.
    """

    def __init__(
        self,
        piece: Piece,
        simulate: Callable[[], TrackedPiece],
        references: References,
        dt: float,
        config: TrackingFilm,
        title: str,
        name: str = "tracking",
    ) -> None:
        self.piece, self._simulate = piece, simulate
        self.config, self.title, self.name = config, title, name
        self._wanted = references.qpos[piece.first : piece.first + piece.frames]
        self._dt, self._every = dt, max(1, round(1 / dt / _FRAME_RATE))
        self.rate = 1 / dt / self._every

    @cached_property
    def tracked(self) -> TrackedPiece:
        """What the robot did."""
        return self._simulate()

    def __len__(self) -> int:
        return len(range(0, self.piece.frames, self._every))

    def __iter__(self) -> Iterator[np.ndarray]:
        from prism_motor.tracking.overlay import TrackingOverlay

        shown, config = slice(None, None, self._every), self.config
        ghosts = None if config.ghost == "none" else self._wanted[shown]
        aside = _ASIDE if config.ghost == "beside" else 0.0
        overlay = TrackingOverlay(self.title, config.width, config.height)
        pictures = draw_states(self.tracked.qpos[shown], config.pictures, ghosts, aside=aside)
        emd, last = 0.0, len(self) - 1
        for index, picture in enumerate(pictures):
            frame = index * self._every
            if index % _MEASURED_EVERY == 0 or index == last:
                emd = self.emd(frame + 1)
            yield overlay.draw(
                picture,
                f"{self.piece.clip}   {config.condition}   {frame * self._dt:.1f} s",
                self.tracked.upright[: frame + 1],
                self.piece.frames,
                emd,
            )

    def emd(self, frames: int) -> float:
        """Return the EMD between the first frames of both, rad."""
        return earth_movers_distance(self.tracked.qpos[:frames, 7:], self._wanted[:frames, 7:])

    def summary(self) -> str:
        """Say how long it is, how much of it the robot stood, and how close it came."""
        seconds = (self.piece.frames - 1) * self._dt
        upright, emd = self.tracked.upright.mean(), self.emd(self.piece.frames)
        return f"{seconds:.1f} s, upright {upright:.0%} of the frames, EMD {emd:.2f} rad"


def film_clips(
    policy: TrackingPolicy, task: TrackingTask, config: TrackingFilm, title: str, stem: str
) -> list[TrackingVideo]:
    """Return a video of every clip, each simulated when it is made.

    Args:
        policy: The policy.
        task: The task that it was trained on.
        config: What to show.
        title: First line of every picture.
        stem: How the names of the files begin.
    """
    references = load_references(replace(task, clips=config.clips or task.clips))
    control = policy_controller(policy, references, task.ahead)
    films = []
    for index, clip in enumerate(references.names):
        frames = min(int(references.lengths[index]), round(config.seconds / task.control_dt) + 1)
        piece = Piece(clip, 0, int(references.starts[index]), max(2, frames))

        def simulate(piece: Piece = piece) -> TrackedPiece:
            return track(
                control, task, references, [piece], condition=config.condition, seed=config.seed
            )[0]

        name = f"{stem}-{clip}-{config.condition}"
        films.append(
            TrackingVideo(piece, simulate, references, task.control_dt, config, title, name)
        )
    return films
