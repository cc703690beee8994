"""What all bodies of the robots do, as seen from the robots: in heading frames.

The heading frame is upright, at the root, and turned so that the root's x axis points along its
x-z plane. Everything is computed for all states at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from prism_motor.sim.kinematics import Bodies, Kinematics
from prism_motor.sim.robots import make_robot

if TYPE_CHECKING:
    from prism_motor.sim.engine import RolloutEngine

ROBOT = "g1-29"
"""The robot that motions are for; its bodies, joints and limits do not depend on the waist."""

LEAN = 1e-6
"""Below this horizontal length of the root's x axis it points straight up or down."""


@cache
def kinematics() -> Kinematics:
    """Return the kinematics of the 29-joint G1, with its 31 bodies."""
    return Kinematics(make_robot(ROBOT))


def read_bodies(engine: RolloutEngine) -> Bodies:
    """Return the bodies of all robots of an engine of the 29-joint G1, in their current states."""
    return kinematics().bodies(engine.qpos, engine.qvel)


def heading(rotation: np.ndarray) -> np.ndarray:
    """Return the heading as cosine and sine of the yaw, (2, N), of root rotations (3, 3, N).

    A root whose x axis points straight up or down has no heading; it gets that of the world.
    """
    planar = rotation[:2, 0]
    length = np.hypot(*planar)
    return np.where(length > LEAN, planar / np.maximum(length, LEAN), [[1.0], [0.0]])


def to_heading(vectors: np.ndarray, facing: np.ndarray) -> np.ndarray:
    """Express world vectors (3, ..., N) in heading frames (2, N): a turn about the vertical."""
    cosine, sine = facing
    x, y, z = vectors
    return np.stack([cosine * x + sine * y, cosine * y - sine * x, z])


def observe_bodies(bodies: Bodies, keep: Sequence[int] | None = None) -> np.ndarray:
    """Return what a critic sees of the bodies, (N, 15 B - 2) as float32: 463 numbers for 31 bodies.

    The layout is that of :func:`body_observation_names`: height of the root, positions relative to
    it (but not its own), the images of each body's x and z axes, linear and angular velocities;
    all in the heading frame.

    Args:
        bodies: The bodies; the first is the root.
        keep: Which bodies to observe, by index, the root first; all by default.
    """
    chosen = slice(None) if keep is None else np.asarray(keep)
    facing = heading(bodies.rotation[:, :, 0])
    position = bodies.position[:, chosen]
    rotation = bodies.rotation[:, :, chosen]
    # (components, bodies, N) for each group, body by body.
    groups = [
        to_heading(position[:, 1:] - position[:, :1], facing),
        np.concatenate([to_heading(rotation[:, axis], facing) for axis in (0, 2)]),
        to_heading(bodies.velocity[:, chosen], facing),
        to_heading(bodies.angular_velocity[:, chosen], facing),
    ]
    count = position.shape[-1]
    rows = [group.swapaxes(0, 1).reshape(-1, count) for group in groups]
    return np.concatenate([position[2:, 0], *rows]).T.astype(np.float32, order="C")


def body_observation_names(names: Sequence[str]) -> list[str]:
    """Return the name of every number of :func:`observe_bodies` for bodies of these names."""
    groups = {
        "position": (names[1:], ("x", "y", "z")),
        "rotation": (names, ("xx", "xy", "xz", "zx", "zy", "zz")),
        "velocity": (names, ("x", "y", "z")),
        "angular_velocity": (names, ("x", "y", "z")),
    }
    return [
        f"{names[0]}_height",
        *(
            f"{body}_{group}_{part}"
            for group, (members, parts) in groups.items()
            for body in members
            for part in parts
        ),
    ]
