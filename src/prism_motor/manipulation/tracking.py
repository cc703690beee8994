"""Where the hand was told to go, and how far from there it ended up.

The paper reports a position and an orientation error without saying against what. Here both are
tracking errors: at the end of every control step, the distance between the pose that the executed
action commanded and the pose that was reached. An arm that is pushed away, stopped by contact or
driven by jerky actions shows in them, whatever the task is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.environment import Array, Environment, Physics

LIBERO_METRES, LIBERO_RADIANS = 0.05, 0.5
"""What an action of one means to LIBERO's operational-space controller, per axis."""


def commanded_pose(
    environment: Environment, before: Physics, action: NDArray[np.floating]
) -> tuple[Array, Array]:
    """Return position and quaternion (w x y z) that a step commanded; call it after the step.

    Args:
        environment: Where the action was executed.
        before: Measured before the step.
        action: What was executed.
    """
    if environment.task.suite == "metaworld":
        from prism_motor.manipulation.suites.metaworld.environment import MetaWorldEnvironment

        assert isinstance(environment, MetaWorldEnvironment)
        return environment.target()
    # The controller adds the action to the pose at the beginning of the step, in world axes.
    clipped = np.clip(np.asarray(action, dtype=np.float64), -1, 1)
    position = before.position + LIBERO_METRES * clipped[:3]
    turn = _from_axis_angle(LIBERO_RADIANS * clipped[3:6])
    return position, _multiply(turn, before.quaternion)


def position_error(one: Array, other: Array) -> float:
    """Return the Euclidean distance, m."""
    return float(np.linalg.norm(one - other))


def orientation_error(one: Array, other: Array) -> float:
    """Return the angle of the rotation between two unit quaternions (w x y z), rad."""
    # atan2 keeps small angles exact, where the arc cosine loses half of the digits.
    difference = _multiply(one, other * np.array([1.0, -1.0, -1.0, -1.0]))
    return float(2 * np.arctan2(np.linalg.norm(difference[1:]), abs(difference[0])))


def _multiply(one: Array, other: Array) -> Array:
    w, x, y, z = one
    a, b, c, d = other
    return np.array(
        [
            w * a - x * b - y * c - z * d,
            w * b + x * a + y * d - z * c,
            w * c - x * d + y * a + z * b,
            w * d + x * c - y * b + z * a,
        ]
    )


def _from_axis_angle(vector: NDArray[Any]) -> Array:
    angle = float(np.linalg.norm(vector))
    if angle == 0:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * vector / angle])
