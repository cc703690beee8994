"""How well a motion was tracked; EMD says nothing about falling, so it never stands alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra

Array = NDArray[np.floating]


def earth_movers_distance(found: Array, wanted: Array) -> float:
    """Return the EMD between two sets of T poses (T, J), each of weight 1/T, Euclidean in rad.

    Equal weights make it an assignment problem, solved exactly; memory is 8 T^2 bytes.
    """
    try:
        from scipy.optimize import linear_sum_assignment
        from scipy.spatial.distance import cdist
    except ImportError as error:
        raise missing_extra("The EMD", "locomotion", error) from error
    _check_pair(found, wanted)
    costs = cdist(found, wanted)
    rows, columns = linear_sum_assignment(costs)
    return float(costs[rows, columns].mean())


def joint_distances(found: Array, wanted: Array) -> dict[str, float]:
    """Compare joint angles (T, J) frame by frame.

    Returns:
        ``joint``: mean absolute difference, mrad; ``velocity`` and ``acceleration``: the same of
        first and second differences between frames, mrad per frame and frame^2; ``proximity``: 1
        where the whole pose is within 2 rad (Euclidean), falling to 0 at 4 rad, on average.
    """
    _check_pair(found, wanted)
    difference = found - wanted
    whole = np.linalg.norm(difference, axis=1)
    distances = {
        "joint": difference,
        "velocity": np.diff(difference, axis=0),
        "acceleration": np.diff(difference, n=2, axis=0),
    }
    means = {k: 1000 * float(np.abs(v).mean()) if len(v) else 0.0 for k, v in distances.items()}
    return {**means, "proximity": float(np.clip((4 - whole) / 2, 0, 1).mean())}


@dataclass(frozen=True)
class Upright:
    """When a robot counts as upright."""

    height: float = 0.4
    """Lowest pelvis, m."""
    tilt: float = 60.0
    """Largest angle between the pelvis's z axis and the vertical, degrees."""

    def __call__(self, heights: Array, gravity: Array) -> NDArray[np.bool_]:
        """Return for each frame whether the robot is upright.

        Args:
            heights: Heights of the pelvis (T,).
            gravity: Direction of gravity in the pelvis's axes (T, 3).
        """
        return (heights >= self.height) & (-gravity[:, 2] >= np.cos(np.radians(self.tilt)))


def time_to_fall(upright: NDArray[np.bool_], dt: float) -> float:
    """Return the seconds until the robot is first not upright; all of them if it never falls."""
    fallen = np.flatnonzero(~upright)
    return float(dt * (fallen[0] if len(fallen) else len(upright)))


def root_drift(found: Array, wanted: Array) -> float:
    """Return the mean horizontal distance (m) of pelvis paths (T, 3) that start at one point."""
    _check_pair(found, wanted)
    apart = (found - found[:1]) - (wanted - wanted[:1])
    return float(np.linalg.norm(apart[:, :2], axis=1).mean())


def foot_slip(velocities: Array, contacts: NDArray[np.bool_]) -> float:
    """Return the mean horizontal speed (m/s) of feet in contact; 0 if none ever is.

    Args:
        velocities: World velocities of the feet (T, feet, 3).
        contacts: Whether each carries weight (T, feet).
    """
    speeds = np.linalg.norm(velocities[..., :2], axis=-1)[contacts]
    return float(speeds.mean()) if len(speeds) else 0.0


def _check_pair(found: Array, wanted: Array) -> None:
    if found.shape != wanted.shape or found.ndim != 2 or not len(found):
        raise InputError(
            "Tracking is measured between as many frames of the same size (T, n), got "
            f"{found.shape} and {wanted.shape}."
        )
