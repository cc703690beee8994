"""Where things are put on the table: at random, or at fixed poses for evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError

Array = NDArray[np.float64]

EVALUATION_POSES = 50
"""Number of fixed poses per task and range."""

APART = 0.002
"""Poses at random are further than this from every fixed one, m."""

_EVALUATION, _RANDOM = 16_101, 16_102
"""Random streams of fixed and of other poses."""

_EDGE = 1e-9


class Placement(NamedTuple):
    """Pose of a thing that lies on the table."""

    x: float
    """Forward from the base, m."""
    y: float
    """To the left, m."""
    yaw: float
    """Rotation about the vertical, rad."""


@dataclass(frozen=True)
class PlacementRange:
    """A box of poses."""

    x: tuple[float, float]
    """Lowest and highest x, m."""
    y: float
    """Largest distance to the middle, m."""
    yaw: float
    """Largest rotation, rad."""

    @property
    def low(self) -> Array:
        """Lowest values."""
        return np.array([self.x[0], -self.y, -self.yaw])

    @property
    def high(self) -> Array:
        """Highest values."""
        return np.array([self.x[1], self.y, self.yaw])

    @property
    def middle(self) -> Placement:
        """The pose in the middle."""
        return Placement(*((self.low + self.high) / 2))

    def check(self, pose: Placement) -> Placement:
        """Return a pose if it is in the range, else raise."""
        try:
            values = np.asarray(pose, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.zeros(0)
        if values.shape != (3,) or not np.isfinite(values).all():
            raise InputError(f"A pose is x, y (m) and yaw (rad), got {pose!r}.")
        if (values < self.low - _EDGE).any() or (values > self.high + _EDGE).any():
            listed = ", ".join(
                f"{name} {low:g} to {high:g}"
                for name, low, high in zip(Placement._fields, self.low, self.high, strict=True)
            )
            raise InputError(
                f"The pose {tuple(values.tolist())} is beyond what the arm was tried on: {listed}."
            )
        return Placement(*values.tolist())


@cache
def evaluation_poses(task: str, where: PlacementRange) -> tuple[Placement, ...]:
    """Return the fixed poses of a task, which depend on nothing but its name and the range."""
    random = np.random.default_rng([_EVALUATION, *task.encode()])
    drawn = random.uniform(where.low, where.high, (EVALUATION_POSES, 3))
    return tuple(Placement(*pose) for pose in drawn.tolist())


def random_pose(task: str, where: PlacementRange, seed: int) -> Placement:
    """Return a pose from a seed that is not one of the fixed ones, nor near one."""
    random = np.random.default_rng([_RANDOM, seed])
    fixed = np.array(evaluation_poses(task, where))[:, :2]
    while True:
        pose = random.uniform(where.low, where.high)
        if np.linalg.norm(fixed - pose[:2], axis=1).min() > APART:
            return Placement(*pose.tolist())
