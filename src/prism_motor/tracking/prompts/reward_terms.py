"""What rewards of prompts are made of, for all states at once.

Every term lies between 0 and 1 and every reward is a product of terms. Numbers that the paper's
appendix and the spec of its backbone leave open are ours; docs/tracking.md has all of them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from prism_motor._checks import InputError
from prism_motor.tracking.bodies import heading, kinematics, to_heading

Array = np.ndarray
Shape = Literal["gaussian", "linear"]

STAND_HEIGHT = 0.5
"""Lowest pelvis of a standing robot, m."""
LEAN = (0.073, 0.0, 1.0)
"""Where the torso's vertical axis points in the heading frame: a little forward."""
WRISTS = ("left_wrist_yaw", "right_wrist_yaw")
KNEES = ("left_knee", "right_knee")


def tolerance(
    values: Array,
    low: float,
    high: float,
    margin: float,
    *,
    at_margin: float = 0.1,
    shape: Shape = "gaussian",
) -> Array:
    """Return 1 for values from ``low`` to ``high``, less the further they are outside.

    Args:
        values: What is judged (N,).
        low: The lowest value that is right.
        high: The highest.
        margin: Distance at which the result is ``at_margin``; 0: a step.
        at_margin: The result there; 0 only for ``linear``.
        shape: How it falls off.
    """
    if low > high or margin < 0:
        raise InputError(
            f"tolerance needs low <= high and margin >= 0, got {low}, {high}, {margin}."
        )
    beyond = np.maximum(np.maximum(low - values, values - high), 0.0)
    if margin == 0:
        return (beyond == 0).astype(float)
    share = beyond / margin
    if shape == "linear":
        return np.maximum(1 - (1 - at_margin) * share, 0.0)
    return np.exp(np.log(at_margin) * np.square(share))


class RewardStates:
    """What rewards look at in some states.

    Args:
        qpos: Positions (N, 36).
        qvel: Velocities (N, 35).
    """

    def __init__(self, qpos: Array, qvel: Array) -> None:
        if len(qpos) != len(qvel) or qpos.ndim != 2 or qvel.ndim != 2:
            raise InputError(
                f"States are as many positions as velocities, got {qpos.shape} and {qvel.shape}."
            )
        self._kinematics = kinematics()
        self._bodies = self._kinematics.bodies(
            np.asarray(qpos, dtype=float), np.asarray(qvel, dtype=float)
        )
        self._facing = heading(self._bodies.rotation[:, :, 0])

    def heights(self, names: tuple[str, ...]) -> Array:
        """Return the heights of bodies (bodies, N), m."""
        return self._bodies.position[2, [self._kinematics.names.index(name) for name in names]]

    @cached_property
    def height(self) -> Array:
        """Height of the pelvis (N,), m."""
        return self._bodies.position[2, 0]

    @cached_property
    def lean(self) -> Array:
        """The torso's vertical axis in the heading frame (3, N)."""
        torso = self._kinematics.names.index("torso")
        return to_heading(self._bodies.rotation[:, 2, torso], self._facing)

    @cached_property
    def velocity(self) -> Array:
        """Velocity of the centre of mass in the heading frame (3, N), m/s."""
        return to_heading(self._kinematics.center_velocity(self._bodies), self._facing)

    @cached_property
    def turning(self) -> Array:
        """Angular velocity of the pelvis in its own axes (3, N), rad/s."""
        return np.einsum(
            "ijn,in->jn", self._bodies.rotation[:, :, 0], self._bodies.angular_velocity[:, 0]
        )


def standing(states: RewardStates) -> Array:
    """Return how far the pelvis is up."""
    return tolerance(
        states.height, STAND_HEIGHT, np.inf, STAND_HEIGHT, at_margin=0.01, shape="linear"
    )


def pelvis_at(states: RewardStates, height: float) -> Array:
    """Return how close the pelvis is to a height: within 5 %."""
    return tolerance(
        states.height, 0.95 * height, 1.05 * height, height / 2, at_margin=0.01, shape="linear"
    )


def upright(states: RewardStates) -> Array:
    """Return how upright the torso is."""
    apart = np.square(states.lean - np.array(LEAN)[:, None]).sum(axis=0)
    return tolerance(apart, 0.0, 0.1, 3.0, at_margin=0.0, shape="linear")


def still(states: RewardStates) -> Array:
    """Return how little the robot moves and turns."""
    speed = np.linalg.norm(states.velocity[:2], axis=0)
    turning = np.linalg.norm(states.turning, axis=0)
    return tolerance(speed, 0.0, 0.0, 0.2) * tolerance(turning, 0.0, 0.0, 0.1)


def moving(states: RewardStates, angle: float, speed: float) -> Array:
    """Return how well the centre of mass moves in a direction (degrees, left of ahead)."""
    planar = states.velocity[:2]
    found = np.linalg.norm(planar, axis=0)
    quick = tolerance(found, 0.9 * speed, 1.1 * speed, speed / 2, at_margin=0.5)
    way = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    cosine = way @ planar / np.maximum(found, 1e-6)
    return (5 * quick + 1) / 6 * (cosine + 1) / 2


def turning(states: RewardStates, axis: int, rate: float) -> Array:
    """Return how fast the pelvis turns about one of its axes: at least at a rate, and its way."""
    found = states.turning[axis] * np.sign(rate)
    least = abs(rate)
    return tolerance(found, least, least + 5.0, least, at_margin=0.0, shape="linear")


def wrist(states: RewardStates, side: int, level: str) -> Array:
    """Return how close a wrist is to a level: low (l) or raised (m)."""
    low, high = {"l": (0.6, 0.8), "m": (1.0, np.inf)}[level]
    return tolerance(states.heights(WRISTS)[side], low, high, 0.2)


def sitting(states: RewardStates) -> Array:
    """Return how far the pelvis is down and the knees are up."""
    knees = tolerance(states.heights(KNEES), 0.1, np.inf, 0.1).prod(axis=0)
    return knees * tolerance(states.height, 0.0, 0.2, 0.5, at_margin=0.01, shape="linear")
