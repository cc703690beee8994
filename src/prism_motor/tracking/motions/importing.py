"""From a stranger's file to a clip: what is repaired, with a note, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from prism_motor._checks import InputError, check_name
from prism_motor._console import count
from prism_motor._ranges import Checked, between
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import ROBOT, kinematics
from prism_motor.tracking.motions.checks import ROUNDING, excess, sole_heights
from prism_motor.tracking.motions.clip import FASTEST, FEWEST_FRAMES, SLOWEST, Clip
from prism_motor.tracking.motions.layouts import Raw, read_motion
from prism_motor.tracking.motions.sampling import quaternion_signs, resample

TOUCHING = 1.0
"""Share of frames, in percent, whose soles may end up below the ground when a clip is shifted."""
_CLIPPED = 0.2
"""Excess over a joint limit up to which angles are clipped; more is another robot or unit, rad."""
_LENGTHS = (0.9, 1.1)
"""Lengths of a quaternion that are normalised; others are no quaternions."""
_HEIGHTS = (0.02, 3.0)
"""Median height of the pelvis that is plausible in metres."""
_JUMP = 0.5
"""Distance between two frames that no robot covers, m."""


@dataclass(frozen=True)
class ImportConfig(Checked, section="--"):
    """How files are read."""

    fps: Annotated[float | None, between(SLOWEST, FASTEST)] = None
    """Frames per second; needed where a file does not say, and used instead of what it says."""
    resample: Annotated[float | None, between(SLOWEST, FASTEST)] = None
    """Frames per second of the clips; default: those of the files."""
    quaternion: Literal["xyzw", "wxyz"] | None = None
    """Order of the root's quaternion, where it is not that of the layout."""
    ground: bool = True
    """Whether to shift the height so that the lower sole touches the ground; clips of prism stay
    as they are."""
    source: str = ""
    """Where the motions come from."""
    licence: str = ""
    """Under which terms they may be used."""
    attribution: str = ""
    """Whom to credit."""


def import_motion(file: Path, config: ImportConfig | None = None) -> Clip:
    """Read a motion in any layout and return it as a clip; its ``changes`` say what was repaired.

    Args:
        file: A .csv or .npz file.
        config: How to read it.
    """
    config = config or ImportConfig()
    name = check_name("motion", file.stem)
    raw = read_motion(file, config.quaternion)
    fps, changes = _frame_rate(file, raw, config.fps)
    _refuse(file, raw)
    quaternion, repaired = _repair_quaternion(file, raw.quaternion)
    joints, clipped = _clip_joints(file, raw.joints)
    about = {
        key: getattr(config, key) or raw.about.get(key, "")
        for key in ("source", "licence", "attribution")
    }
    clip = Clip(
        name, fps, raw.position, quaternion, joints,
        changes=(*raw.changes, *changes, *repaired, *clipped), **about,
    )  # fmt: skip
    if config.ground and raw.layout != "prism":
        clip = put_on_ground(clip)
    if config.resample is None or config.resample == fps:
        return clip
    change = f"resampled from {fps:g} to {config.resample:g} frames per second"
    clip = replace(resample(clip, config.resample), changes=(*clip.changes, change))
    if len(clip) < FEWEST_FRAMES:
        raise InputError(f"{file}: {len(clip)} frames are left; {FEWEST_FRAMES} are needed.")
    return clip


def put_on_ground(clip: Clip) -> Clip:
    """Shift the height of a clip so that the lower sole touches the ground."""
    low = float(np.percentile(sole_heights(clip.qpos).min(axis=0), TOUCHING))
    if abs(low) < 5e-4:
        return clip
    way = f"{'lowered' if low > 0 else 'raised'} by {100 * abs(low):.1f} cm, onto the ground"
    position = clip.position - [0, 0, low]
    return replace(clip, position=position, changes=(*clip.changes, way))


def _frame_rate(file: Path, raw: Raw, given: float | None) -> tuple[float, list[str]]:
    if given is None and raw.fps is None:
        raise InputError(
            f"{file} does not say how many frames per second it has. Give --fps: 30 for LAFAN1, 60 "
            "for G1 Moves."
        )
    if raw.fps is not None and not SLOWEST <= raw.fps <= FASTEST:
        raise InputError(
            f"{file} says that it has {raw.fps:g} frames per second; from {SLOWEST:g} to "
            f"{FASTEST:g} are allowed."
        )
    if given is None or raw.fps is None or given == raw.fps:
        return float(given or raw.fps or 0), []
    return given, [f"taken as {given:g} frames per second instead of the file's {raw.fps:g}"]


def _refuse(file: Path, raw: Raw) -> None:
    """Raise unless a motion can be one of this robot."""
    frames = len(raw.joints)
    lengths = {len(raw.position), len(raw.quaternion), frames}
    if lengths != {frames} or frames < FEWEST_FRAMES:
        raise InputError(
            f"{file} has {', '.join(map(str, sorted(lengths)))} frames; at least {FEWEST_FRAMES} "
            "are needed, as many of the root as of the joints."
        )
    everything = np.concatenate([raw.position, raw.quaternion, raw.joints], axis=1)
    bad = np.argwhere(~np.isfinite(everything))
    if len(bad):
        names = [*"xyz", *(f"quaternion {c}" for c in "wxyz"), *make_robot(ROBOT).joint_names]
        row, column = bad[0]
        raise InputError(
            f"{file}: {count(len(bad), 'value')} not finite, the first in frame {row} "
            f"({names[column]}). Repair or cut the motion where it was made."
        )
    height = float(np.median(raw.position[:, 2]))
    if not _HEIGHTS[0] <= height <= _HEIGHTS[1]:
        raise InputError(
            f"{file}: the pelvis is at a height of {height:.3g} m, the median of all frames; "
            f"{_HEIGHTS[0]:g} to {_HEIGHTS[1]:g} m are plausible. Are the positions in metres, "
            "with z up?"
        )
    jump = np.linalg.norm(np.diff(raw.position, axis=0), axis=1)
    if jump.max() > _JUMP:
        raise InputError(
            f"{file}: the root jumps by {jump.max():.2f} m after frame {jump.argmax()}. Cut the "
            "motion there."
        )


def _repair_quaternion(file: Path, quaternion: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Normalise quaternions and give them one sign, so that neighbours are near each other."""
    length = np.linalg.norm(quaternion, axis=1)
    low, high = length.min(), length.max()
    if low < _LENGTHS[0] or high > _LENGTHS[1]:
        raise InputError(
            f"{file}: the root's quaternions have lengths from {low:.3g} to {high:.3g}, not 1. "
            "Are the columns in another order, or is it a motion of another robot?"
        )
    changes = []
    if max(1 - low, high - 1) > 1e-3:
        changes.append(f"quaternions normalised (lengths were {low:.3f} to {high:.3f})")
    unit = quaternion / length[:, None]
    signs = quaternion_signs(unit)
    if flips := int((np.diff(signs) != 0).sum()):
        changes.append(f"{count(flips, 'sign flip')} of quaternions undone")
    return unit * signs[:, None], changes


def _clip_joints(file: Path, joints: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Bring angles into the joints' ranges if they are slightly outside."""
    beyond = excess(joints)
    worst = int(beyond.max(axis=0).argmax())
    name, most = make_robot(ROBOT).joint_names[worst], float(beyond[:, worst].max())
    if most > _CLIPPED:
        raise InputError(
            f"{file}: {name} is {most:.2f} rad beyond its range; up to {_CLIPPED} rad would be "
            "clipped. Are the angles in radians and the joints in the G1's order, or is it a "
            "motion of another robot?"
        )
    if most <= 0:
        return joints, []
    inside = np.clip(joints, *kinematics().limits.T)
    if most <= ROUNDING:
        return inside, []
    frames = count(int((beyond > ROUNDING).any(axis=1).sum()), "frame")
    return inside, [f"joints clipped to their ranges in {frames}, most: {name} by {most:.3f} rad"]
