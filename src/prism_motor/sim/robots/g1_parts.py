"""Links of Unitree's G1 that our models share: the chain of a leg, its looks and its soles.

Kinematics, masses, inertias and joint ranges are facts of Unitree's published model (BSD-3-Clause,
see NOTICE). Geometry is ours. The left side is the model; the right one is its exact mirror image,
so that mirrored motions are equally good motions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prism_motor.sim.robots.primitives import (
    ACCENT,
    DARK,
    LIGHT,
    Vector,
    box,
    capsule,
    ellipsoid,
    sole,
    text,
)

STRAIGHT = (1, 0, 0, 0)
"""No rotation."""


def tilt(y: float) -> Vector:
    """Return a rotation about y by the quaternion's y component."""
    return ((1 - y**2) ** 0.5, 0, y, 0)


@dataclass(frozen=True)
class Link:
    """A link, of the left side if there are two, and the joint that moves it."""

    name: str
    offset: Vector
    """Position in the parent's frame, m."""
    turn: Vector
    """Fixed rotation relative to the parent, quaternion wxyz."""
    mass: float
    center: Vector
    """Centre of mass, m."""
    principal: Vector
    """Orientation of the principal axes, quaternion wxyz."""
    inertia: Vector
    """Principal moments, kg m^2."""
    axis: str
    """Joint axis: x (roll), y (pitch) or z (yaw)."""
    limits: tuple[float, float]
    """Joint range, rad."""
    joint: str = ""
    """Name of its joint; that of the link by default."""


LEG = (
    Link("hip_pitch", (0, 0.064452, -0.1027), STRAIGHT, 1.35, (0.002741, 0.047791, -0.02606),
         (0.954862, 0.293964, 0.0302556, 0.030122), (0.00181517, 0.00153422, 0.00116212),
         "y", (-2.5307, 2.8798)),
    Link("hip_roll", (0, 0.052, -0.030465), tilt(-0.0873386), 1.52,
         (0.029812, -0.001045, -0.087934), (0.977808, -1.97119e-05, 0.205576, -0.0403793),
         (0.00254986, 0.00241169, 0.00148755), "x", (-0.5236, 2.9671)),
    Link("hip_yaw", (0.025001, 0, -0.12412), STRAIGHT, 1.702, (-0.057709, -0.010981, -0.15078),
         (0.600598, 0.15832, 0.223482, 0.751181), (0.00776166, 0.00717575, 0.00160139),
         "z", (-2.7576, 2.7576)),
    Link("knee", (-0.078273, 0.0021489, -0.17734), tilt(0.0873386), 1.932,
         (0.005457, 0.003964, -0.12074), (0.923418, -0.0327699, 0.0158246, 0.382067),
         (0.0113804, 0.0112778, 0.00146458), "y", (-0.087267, 2.8798)),
    Link("ankle_pitch", (0, -9.4445e-05, -0.30001), STRAIGHT, 0.074, (-0.007269, 0, 0.011137),
         (0.603053, 0.369225, 0.369225, 0.603053), (1.89e-05, 1.40805e-05, 6.9195e-06),
         "y", (-0.87267, 0.5236)),
    Link("ankle_roll", (0, 0, -0.017558), STRAIGHT, 0.608, (0.026505, 0, -0.016425),
         (-0.000481092, 0.728482, -0.000618967, 0.685065), (0.00167218, 0.0016161, 0.000217621),
         "x", (-0.2618, 0.2618)),
)  # fmt: skip

SOLE = ((-0.05, 0.025), (-0.05, -0.025), (0.12, 0.03), (0.12, -0.03))
"""Contact points in the ankle_roll frame, m."""

SOLE_HEIGHT = (-0.03, 0.005)
"""Height of the spheres at these points in that frame, and their radius, m."""

FEET, KNEES = ("left_ankle_roll", "right_ankle_roll"), ("left_knee", "right_knee")
"""Bodies."""

FOOT_OFFSET = 0.035
"""Height of the ankle_roll frame above the sole, m."""

STAND_HEIGHT = 0.7842
"""Pelvis above the ground in the default pose of the legs, m."""

_AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}


def chain(links: tuple[Link, ...], side: int, geometry: Callable[[str, int], str]) -> str:
    """Nest links, each in the one before.

    Args:
        links: The links of the left side, or of the middle.
        side: 1 for left, -1 for right, 0 for the middle.
        geometry: What to put into a link, by its name and side.
    """
    opening, closing = "", ""
    for link in links:
        opening += open_link(link, side, geometry(link.name, side))
        closing += "\n</body>"
    return opening + closing


def open_link(link: Link, side: int, inside: str) -> str:
    """Return a body with its joint and what is inside, not closed yet."""
    mirror = side or 1
    body, joint = (f"{_PREFIX[side]}{name}" for name in (link.name, link.joint or link.name))
    low, high = link.limits
    if mirror < 0 and link.axis in "xz":
        low, high = -high, -low
    return f"""
<body name="{body}" pos="{text(across(link.offset, mirror))}"
  quat="{text(_turned(link.turn, mirror))}">
  <inertial mass="{link.mass}" pos="{text(across(link.center, mirror))}"
    quat="{text(_turned(link.principal, mirror))}" diaginertia="{text(link.inertia)}"/>
  <joint name="{joint}" axis="{_AXES[link.axis]}" range="{low} {high}"/>
  {inside}"""


_PREFIX = {1: "left_", -1: "right_", 0: ""}


def across(vector: Vector, side: int) -> Vector:
    """Return a vector, or its mirror image for the right side."""
    return (vector[0], side * vector[1], vector[2])


def _turned(quaternion: Vector, side: int) -> Vector:
    w, x, y, z = quaternion
    return (w, side * x, y, side * z)


def leg_looks(name: str, side: int) -> str:
    """Return a link's visible geometry and, under the foot, its contact geometry."""
    y = float(side)
    if name == "hip_pitch":
        return capsule((0, 0.012 * y, 0), (0, 0.055 * y, -0.012), 0.045, DARK)
    if name == "hip_roll":
        return capsule((0.01, 0, -0.01), (0.02, 0, -0.10), 0.048, LIGHT)
    if name == "hip_yaw":
        return capsule((-0.012, 0, -0.02), (-0.072, 0.002 * y, -0.155), 0.052, LIGHT)
    if name == "knee":
        return capsule((0, -0.035 * y, 0), (0, 0.035 * y, 0), 0.045, DARK) + capsule(
            (0.012, 0, -0.05), (0.004, 0, -0.26), 0.038, LIGHT
        )
    if name == "ankle_pitch":
        return capsule((0, -0.02, 0), (0, 0.02, 0), 0.024, DARK)
    prefix = "left" if side > 0 else "right"
    contacts = "".join(
        sole(f"{prefix}_sole_{i}", (px, py * side, -0.03), 0.005) for i, (px, py) in enumerate(SOLE)
    )
    shoe = [
        box((0.034, 0, -0.027), (0.083, 0.031, 0.0075), DARK),
        ellipsoid((0.03, 0, -0.02), (0.082, 0.032, 0.022), ACCENT),
        capsule((-0.012, 0, -0.012), (0.006, 0, -0.006), 0.028, ACCENT),
    ]
    return contacts + "".join(shoe)
