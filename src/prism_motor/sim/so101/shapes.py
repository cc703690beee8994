"""Geometry of the arm: boxes and capsules around its printed parts and motors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from prism_motor.sim.scene import import_mujoco

Vector = tuple[float, float, float]

ARM, SCENE = 1, 2
"""Bits of collisions: the arm touches the scene and not itself; the scene touches everything."""

_YELLOW, _GREY = (1.0, 0.82, 0.12, 1.0), (0.1, 0.1, 0.1, 1.0)
_FRICTION = 0.6


@dataclass(frozen=True)
class Shape:
    """A box, or a capsule along y if ``size`` has a radius and a half length; mm."""

    centre: Vector
    """Centre in the body."""
    size: tuple[float, ...]
    """Half sizes of a box, or radius and half length of a capsule."""
    touches: bool = False
    """Whether it collides with the scene."""
    motor: bool = False
    """Whether it is a motor, which is drawn grey."""
    pitch: float = 0.0
    """Rotation about y, rad; positive: the front is lower."""


SHAPES: dict[str, tuple[Shape, ...]] = {
    "base": (
        Shape((21, 0, 7), (43.5, 55.5, 9.5)),
        Shape((-4, 0, 45), (22, 24, 25)),
        Shape((26.3, 0, 44.1), (22.7, 12.4, 19.8), motor=True),
    ),
    "shoulder": (
        Shape((17.7, 0, -4.1), (29.9, 23, 14.5)),
        Shape((31.5, 1.2, 24), (19, 27.5, 14)),
        Shape((30.4, 0, 41.7), (12.4, 19.8, 22.7), motor=True),
    ),
    "upper_arm": (
        Shape((0.25, 20.2, 59.1), (12.25, 33.6, 71.1), touches=True),
        Shape((15.5, 18.3, 112.6), (22.7, 19.8, 12.4), motor=True),
    ),
    "lower_arm": (
        Shape((53.4, 20.2, 0), (65.3, 32.2, 12), touches=True),
        Shape((104.7, 20, 3.4), (14, 28.2, 18.4)),
        Shape((122.4, 18.3, 5.2), (22.7, 19.8, 12.4), motor=True),
    ),
    "wrist": (
        Shape((26.9, 22.2, 2.2), (38.9, 31.1, 17.8)),
        Shape((42.8, 30.6, 0), (19.8, 22.7, 12.4), motor=True),
    ),
    "gripper": (
        Shape((23.4, 0, 7.7), (12.4, 19.8, 22.7), motor=True),
        Shape((22, 0, -2.5), (15, 15, 32.5), touches=True),
        Shape((40, 0, -24), (5, 15, 10)),
        Shape((71, 0, -16.5), (31, 10, 3.5), touches=True, pitch=-0.09),
        Shape((99, 0, -10), (5, 3), touches=True),
    ),
    "jaw": (
        Shape((38, -19, -5.5), (36, 10, 5.5), touches=True, pitch=0.12),
        Shape((73.5, -19, -10.5), (4.5, 3), touches=True),
    ),
}
"""Shapes by body, in its frame."""


def add_shape(body: Any, shape: Shape) -> None:
    """Add a shape to a body; it has no mass, which the body's own numbers give."""
    mujoco = import_mujoco()
    geom = body.add_geom(
        pos=[value / 1000 for value in shape.centre],
        rgba=_GREY if shape.motor else _YELLOW,
        mass=0.0,
        friction=(_FRICTION, 0.005, 0.0001),
        contype=ARM * shape.touches,
        conaffinity=SCENE * shape.touches,
    )
    if len(shape.size) == 3:
        geom.type = mujoco.mjtGeom.mjGEOM_BOX
        geom.size = [value / 1000 for value in shape.size]
        geom.quat = [math.cos(shape.pitch / 2), 0.0, math.sin(shape.pitch / 2), 0.0]
    else:
        geom.type = mujoco.mjtGeom.mjGEOM_CAPSULE
        radius, half = shape.size
        geom.size = [radius / 1000, half / 1000, 0.0]
        geom.quat = [math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0]  # z of a capsule becomes y
