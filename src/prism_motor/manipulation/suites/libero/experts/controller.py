"""From a pose the hand should have to an action of LIBERO's operational-space controller."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prism_motor.manipulation.suites.libero.experts.scene import Array, Pose

OPEN, KEEP, CLOSED = -1.0, 0.0, 1.0
"""What the seventh action asks of the fingers."""


@dataclass(frozen=True)
class Command:
    """What a skill asks for at one step."""

    pose: Pose
    """Where the hand should go."""
    fingers: float
    """``OPEN``, ``KEEP`` or ``CLOSED``."""
    speed: float = 1.0
    """Largest norm of the linear action."""


@dataclass(frozen=True)
class Gains:
    """Proportional control: action per metre and per radian of error."""

    linear: float = 12.0
    """1 / m; 20 would set the controller's goal onto the target at once."""
    angular: float = 2.0
    """1 / rad; 2 sets the controller's goal onto the target at once."""


def act(hand: Pose, command: Command, gains: Gains) -> NDArray[np.float64]:
    """Return the seven actions in [-1, 1] that bring the hand towards the commanded pose."""
    error = command.pose.position - hand.position
    turn = Rotation.from_matrix(command.pose.rotation @ hand.rotation.T).as_rotvec()
    return np.concatenate(
        [
            _limit(gains.linear * error, command.speed),
            _limit(gains.angular * turn, 1.0),
            [command.fingers],
        ]
    )


def facing(ahead: Array, closing: Array) -> Array:
    """Return the hand's rotation that looks ``ahead`` and closes its fingers along ``closing``."""
    z = ahead / float(np.linalg.norm(ahead))
    x = closing - z * float(closing @ z)
    x /= float(np.linalg.norm(x))
    return np.column_stack([x, np.cross(z, x), z]).astype(np.float64)


def nearest_turn(rotation: Array, hand: Array) -> Array:
    """Return the rotation, or the equal grasp with the fingers swapped, whichever is nearer."""
    swapped = rotation @ np.diag([-1.0, -1.0, 1.0])
    return min((rotation, swapped), key=lambda r: turn_between(r, hand))


def turn_between(first: Array, second: Array) -> float:
    """Angle between two rotations."""
    return float(np.arccos(np.clip((np.trace(first.T @ second) - 1.0) / 2.0, -1.0, 1.0)))


def _limit(vector: Array, largest: float) -> Array:
    return vector * min(1.0, largest / max(float(np.linalg.norm(vector)), 1e-9))
