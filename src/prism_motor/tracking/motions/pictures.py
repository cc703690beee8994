"""Pictures of a clip: a video of all of it, or one image of moments side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from prism_motor._checks import InputError, check_choice
from prism_motor._extras import missing_extra
from prism_motor._ranges import Checked, between
from prism_motor.runs.atomic import atomic_file
from prism_motor.sim.meshes import picture_model
from prism_motor.sim.rendering import Renderer
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import ROBOT
from prism_motor.tracking.motions.sampling import make_motion

if TYPE_CHECKING:
    from prism_motor.tracking.motions.clip import Clip

VIDEO_RATE = 25.0
"""Frames per second of a video."""

_SHADOWS = 0.6
"""How far shadows reach, in sizes of the model; a camera farther away sees stripes beyond."""


@dataclass(frozen=True)
class PictureConfig(Checked, section="--"):
    """What a clip is drawn like."""

    width: Annotated[int, between(64, 3840)] = 480
    """Width of one picture, pixels; even."""
    height: Annotated[int, between(64, 3840)] = 480
    """Height, pixels; even."""
    moments: Annotated[int, between(1, 32)] = 6
    """Moments that an image (.png) shows side by side."""
    azimuth: Annotated[float, between(-360, 360)] = 140.0
    """Viewing direction, degrees; 180 sees a robot that faces 0 from the front."""
    primitives: bool = False
    """Draw simple shapes even if a package with meshes of the robot is installed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, pixels in (("width", self.width), ("height", self.height)):
            if pixels % 2:
                raise InputError(f"--{name} must be even, got {pixels}.")


def check_picture(file: Path) -> None:
    """Raise unless a clip can be drawn into a file of this name."""
    if file.suffix.lower() != ".png":
        from prism_motor.sim.video_files import FORMATS, check_file

        check_choice("kind of picture", file.suffix.lower(), [".png", *FORMATS])
        check_file(file)


def draw_clip(clip: Clip, config: PictureConfig) -> tuple[Iterator[np.ndarray], int]:
    """Return the pictures of a clip for a video, and how many there are."""
    motion = make_motion(clip, VIDEO_RATE)
    return draw_states(motion.qpos, config), len(motion)


def write_picture(file: Path, clip: Clip, config: PictureConfig) -> None:
    """Write an image of moments of a clip, side by side; evenly spread, first and last included."""
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("Pictures", "video", error) from error
    moments = np.linspace(0, len(clip) - 1, config.moments).round().astype(int)
    sheet = np.concatenate(list(draw_states(clip.qpos[moments], config)), axis=1)
    with atomic_file(file) as out:
        Image.fromarray(sheet).save(out, format="PNG")


def draw_states(
    states: np.ndarray,
    config: PictureConfig,
    ghosts: np.ndarray | None = None,
    *,
    aside: float = 0.0,
) -> Iterator[np.ndarray]:
    """Draw the robot in states (T, 36), one picture each.

    Args:
        states: The states.
        config: What pictures look like.
        ghosts: As many states of a translucent second robot.
        aside: How far to the left of its own place the second robot is drawn, m.
    """
    robot = make_robot(ROBOT)
    model = picture_model(robot, primitives=config.primitives)
    size = {"width": config.width, "height": config.height}
    angle = np.radians(config.azimuth)
    left = aside * np.array([-np.sin(angle), np.cos(angle)])
    zoom = 1 / (1 + 0.25 * aside)
    if ghosts is not None:
        model.vis.map.shadowclip = _SHADOWS
    with Renderer(model, robot, **size, azimuth=config.azimuth, zoom=zoom) as renderer:
        for index, state in enumerate(states):
            middle = state[:2] if ghosts is None else state[:2] + left / 2
            if index == 0:
                renderer.look_at(middle)
            ghost = None
            if ghosts is not None:
                ghost = ghosts[index].copy()
                ghost[:2] += left
            yield renderer.draw(state, ghost, middle)
