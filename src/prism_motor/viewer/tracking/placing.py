"""Where a reference stands: a motion is moved and turned to begin where the robot is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism_motor.sim.kinematics import rotation_matrix
from prism_motor.tracking.bodies import heading


def yaw_of(quaternion: np.ndarray) -> float:
    """Return the heading of a root by its quaternion wxyz, rad."""
    cosine, sine = heading(rotation_matrix(np.asarray(quaternion)[:, None]))
    return float(np.arctan2(sine[0], cosine[0]))


@dataclass(frozen=True)
class Placing:
    """A turn about the vertical through a point of a motion, and where that point goes."""

    pivot: np.ndarray
    """The point, (2,) m."""
    place: np.ndarray
    """Where it goes, (2,) m."""
    turn: float
    """The turn, rad."""

    @classmethod
    def between(cls, wanted: np.ndarray, found: np.ndarray) -> Placing:
        """Return what brings one state to the place and heading of another."""
        turn = yaw_of(found[3:7]) - yaw_of(wanted[3:7])
        return cls(wanted[:2].copy(), found[:2].copy(), turn)

    def __call__(self, qpos: np.ndarray) -> np.ndarray:
        """Return a state of the motion at its place."""
        cosine, sine = np.cos(self.turn), np.sin(self.turn)
        x, y = qpos[:2] - self.pivot
        placed = qpos.copy()
        placed[:2] = self.place + np.array([cosine * x - sine * y, sine * x + cosine * y])
        half, w = np.sin(self.turn / 2), np.cos(self.turn / 2)
        qw, qx, qy, qz = qpos[3:7]
        placed[3:7] = [
            w * qw - half * qz, w * qx - half * qy, w * qy + half * qx, w * qz + half * qw
        ]  # fmt: skip
        return placed
