"""Joints of the SO-101 and the units of their positions.

LeRobot counts the five joints of the arm in degrees and the gripper in percent of its range; a
servo counts 4096 ticks per turn. The zero of a joint is the middle of its range (LeRobot's
calibration since 2025), except for the gripper, whose 0 is closed and 100 open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prism_motor._checks import InputError

Array = NDArray[np.float64]

JOINTS = (
    "shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper",
)  # fmt: skip
"""Names of the joints in LeRobot's order, which is that of the servos' ids 1 to 6."""

FEATURES = tuple(f"{joint}.pos" for joint in JOINTS)
"""LeRobot's names of positions and targets."""

LOW = np.array([-1.91986, -1.74533, -1.69, -1.65806, -2.74385, -0.17453])
HIGH = np.array([1.91986, 1.74533, 1.69, 1.65806, 2.84121, 1.74533])
"""Ranges of the joints, rad."""

TURN = 4095
"""Ticks per turn as LeRobot counts them."""

CENTRE = 2047
"""Tick at which a joint is at zero."""


def to_lerobot(radians: ArrayLike) -> Array:
    """Turn joint angles (..., 6) into degrees and percent of the gripper's opening."""
    angles = _six(radians)
    values = np.degrees(angles)
    values[..., 5] = 100 * (angles[..., 5] - LOW[5]) / (HIGH[5] - LOW[5])
    return values


def to_radians(values: ArrayLike) -> Array:
    """Turn degrees and percent of the gripper's opening (..., 6) into joint angles."""
    given = _six(values)
    angles = np.radians(given)
    angles[..., 5] = LOW[5] + given[..., 5] / 100 * (HIGH[5] - LOW[5])
    return angles


def to_ticks(radians: ArrayLike) -> NDArray[np.int64]:
    """Turn joint angles (..., 6) into the nearest positions that servos can report."""
    return np.rint(CENTRE + _six(radians) * TURN / (2 * np.pi)).astype(np.int64)


def from_ticks(ticks: ArrayLike) -> Array:
    """Turn positions of servos (..., 6) into joint angles."""
    return (_six(ticks) - CENTRE) * (2 * np.pi) / TURN


@dataclass(frozen=True)
class TickRange:
    """What LeRobot's calibration file says of one servo."""

    id: int
    """Number of the servo on the bus."""
    low: int
    """Lowest tick."""
    high: int
    """Highest tick."""


def tick_ranges() -> dict[str, TickRange]:
    """Return the calibration of the twin by joint; a wrist that turns freely has the whole turn."""
    ends = np.stack([to_ticks(LOW), to_ticks(HIGH)], axis=1)
    ends[JOINTS.index("wrist_roll")] = (0, TURN)
    return {
        joint: TickRange(number, int(low), int(high))
        for number, (joint, (low, high)) in enumerate(zip(JOINTS, ends, strict=True), start=1)
    }


def check_targets(targets: ArrayLike) -> Array:
    """Return targets in LeRobot's units as an array, or raise unless they are six finite numbers.

    Like the servos, the twin stops at the ends of a joint's range; that is no error.
    """
    values = np.asarray(targets, dtype=np.float64)
    if values.shape != (len(JOINTS),):
        raise InputError(
            f"Targets of the SO-101 are {len(JOINTS)} numbers ({', '.join(JOINTS)}), got shape "
            f"{values.shape}."
        )
    if not np.isfinite(values).all():
        raise InputError(f"Targets of the SO-101 must be finite, got {values.tolist()}.")
    return values


def _six(values: ArrayLike) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.shape[-1:] != (len(JOINTS),):
        raise InputError(f"Expected values of {len(JOINTS)} joints, got shape {array.shape}.")
    return array


ACTION_LOW, ACTION_HIGH = to_lerobot(LOW), to_lerobot(HIGH)
"""Limits of targets in LeRobot's units, at which the servos stop."""
