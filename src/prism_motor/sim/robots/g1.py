"""Unitree G1 with twelve leg joints; waist and arms are locked in a natural pose.

Kinematics, masses, inertias, joint ranges, torque and velocity limits are facts of Unitree's
published model (BSD-3-Clause, see NOTICE). Geometry is ours: four small spheres under each foot, a
few primitives on the trunk, no self-collision. The left leg is the model; the right one is its
exact mirror image, so that mirrored motions are equally good motions.
"""

from __future__ import annotations

from dataclasses import dataclass

from prism_motor.sim.robots.primitives import (
    ACCENT,
    DARK,
    LIGHT,
    Vector,
    box,
    capsule,
    document,
    ellipsoid,
    sole,
    text,
)
from prism_motor.sim.robots.robot import JointSpec, Robot


@dataclass(frozen=True)
class _Link:
    """A leg link of the left side and the joint that moves it."""

    name: str
    offset: Vector
    """Position in the parent's frame, m."""
    tilt: float
    """Fixed rotation about y relative to the parent, as the quaternion's y component."""
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


_LEG = (
    _Link("hip_pitch", (0, 0.064452, -0.1027), 0.0, 1.35, (0.002741, 0.047791, -0.02606),
          (0.954862, 0.293964, 0.0302556, 0.030122), (0.00181517, 0.00153422, 0.00116212),
          "y", (-2.5307, 2.8798)),
    _Link("hip_roll", (0, 0.052, -0.030465), -0.0873386, 1.52, (0.029812, -0.001045, -0.087934),
          (0.977808, -1.97119e-05, 0.205576, -0.0403793), (0.00254986, 0.00241169, 0.00148755),
          "x", (-0.5236, 2.9671)),
    _Link("hip_yaw", (0.025001, 0, -0.12412), 0.0, 1.702, (-0.057709, -0.010981, -0.15078),
          (0.600598, 0.15832, 0.223482, 0.751181), (0.00776166, 0.00717575, 0.00160139),
          "z", (-2.7576, 2.7576)),
    _Link("knee", (-0.078273, 0.0021489, -0.17734), 0.0873386, 1.932,
          (0.005457, 0.003964, -0.12074), (0.923418, -0.0327699, 0.0158246, 0.382067),
          (0.0113804, 0.0112778, 0.00146458), "y", (-0.087267, 2.8798)),
    _Link("ankle_pitch", (0, -9.4445e-05, -0.30001), 0.0, 0.074, (-0.007269, 0, 0.011137),
          (0.603053, 0.369225, 0.369225, 0.603053), (1.89e-05, 1.40805e-05, 6.9195e-06),
          "y", (-0.87267, 0.5236)),
    _Link("ankle_roll", (0, 0, -0.017558), 0.0, 0.608, (0.026505, 0, -0.016425),
          (-0.000481092, 0.728482, -0.000618967, 0.685065), (0.00167218, 0.0016161, 0.000217621),
          "x", (-0.2618, 0.2618)),
)  # fmt: skip

_PELVIS = {
    "mass": 17.7349,
    "center": (0.0144905, 0.000151462, 0.144068),
    "principal": (0.999881, -0.000505543, -0.0154276, 0.000328408),
    "inertia": (0.552723, 0.454092, 0.211762),
}
"""Pelvis with the locked torso, head and arms."""

# name: default angle, stiffness, damping, effort, velocity
_DRIVES = {
    "hip_pitch": (-0.1, 100.0, 2.0, 88.0, 32.0),
    "hip_roll": (0.0, 100.0, 2.0, 139.0, 20.0),
    "hip_yaw": (0.0, 100.0, 2.0, 88.0, 32.0),
    "knee": (0.3, 150.0, 4.0, 139.0, 20.0),
    "ankle_pitch": (-0.2, 40.0, 2.0, 50.0, 37.0),
    "ankle_roll": (0.0, 40.0, 2.0, 50.0, 37.0),
}

_SOLE = ((-0.05, 0.025), (-0.05, -0.025), (0.12, 0.03), (0.12, -0.03))
"""Contact points in the ankle_roll frame; spheres of 5 mm, 30 mm below it."""

_AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}


def g1() -> Robot:
    """Return the 12-joint G1."""
    joints = tuple(
        JointSpec(f"{side}_{name}", *_DRIVES[name])
        for side in ("left", "right")
        for name in _DRIVES
    )
    names = list(_DRIVES)
    return Robot(
        name="g1",
        xml=document("g1", _pelvis()),
        joints=joints,
        base="pelvis",
        feet=("left_ankle_roll", "right_ankle_roll"),
        knees=("left_knee", "right_knee"),
        foot_offset=0.035,
        stand_height=0.7842,
        mirror=tuple(range(6, 12)) + tuple(range(6)),
        mirror_sign=tuple(-1 if ("roll" in n or "yaw" in n) else 1 for n in names) * 2,
    )


def _pelvis() -> str:
    return f"""
<body name="pelvis" pos="0 0 0.7842">
  <freejoint name="root"/>
  <inertial mass="{_PELVIS["mass"]}" pos="{text(_PELVIS["center"])}"
    quat="{text(_PELVIS["principal"])}" diaginertia="{text(_PELVIS["inertia"])}"/>
{_trunk()}
{_leg(1)}
{_leg(-1)}
</body>"""


def _leg(side: int) -> str:
    """Nest the links of one leg; ``side`` is 1 for left and -1 for right."""
    prefix = "left" if side > 0 else "right"
    opening, closing = [], []
    for link in _LEG:
        w = (1 - link.tilt**2) ** 0.5
        low, high = link.limits
        if side < 0 and link.axis in "xz":
            low, high = -high, -low
        pw, px, py, pz = link.principal
        opening.append(f"""
<body name="{prefix}_{link.name}" pos="{text(_mirror(link.offset, side))}"
  quat="{w:.9g} 0 {link.tilt:.9g} 0">
  <inertial mass="{link.mass}" pos="{text(_mirror(link.center, side))}"
    quat="{text((pw, side * px, py, side * pz))}" diaginertia="{text(link.inertia)}"/>
  <joint name="{prefix}_{link.name}" axis="{_AXES[link.axis]}" range="{low} {high}"/>
  {_leg_geometry(link.name, side)}""")
        closing.append("</body>")
    return "\n".join(opening + closing)


def _mirror(vector: Vector, side: int) -> Vector:
    return (vector[0], side * vector[1], vector[2])


def _leg_geometry(name: str, side: int) -> str:
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
        sole(f"{prefix}_sole_{i}", (px, py * side, -0.03), 0.005)
        for i, (px, py) in enumerate(_SOLE)
    )
    shoe = [
        box((0.034, 0, -0.027), (0.083, 0.031, 0.0075), DARK),
        ellipsoid((0.03, 0, -0.02), (0.082, 0.032, 0.022), ACCENT),
        capsule((-0.012, 0, -0.012), (0.006, 0, -0.006), 0.028, ACCENT),
    ]
    return contacts + "".join(shoe)


def _trunk() -> str:
    """Return visible torso, head and hanging arms, and the contact geometry of a fallen robot."""
    parts = [
        '<geom name="pelvis_contact" class="collision" type="capsule" '
        'fromto="0 -0.08 -0.02 0 0.08 -0.02" size="0.07"/>',
        '<geom name="torso_contact" class="collision" type="capsule" '
        'fromto="0 0 0.12 0 0 0.40" size="0.11"/>',
        capsule((0, -0.055, -0.045), (0, 0.055, -0.045), 0.062, DARK),
        capsule((0, 0, 0.0), (0, 0, 0.07), 0.065, DARK),
        ellipsoid((0.004, 0, 0.20), (0.088, 0.115, 0.165), LIGHT),
        ellipsoid((0.080, 0, 0.24), (0.020, 0.034, 0.034), ACCENT),
        capsule((0, 0, 0.36), (0.005, 0, 0.40), 0.035, DARK),
        ellipsoid((0.01, 0, 0.46), (0.075, 0.066, 0.09), LIGHT),
        ellipsoid((0.035, 0, 0.468), (0.056, 0.060, 0.040), DARK),
    ]
    for y in (1.0, -1.0):
        parts += [
            capsule((0, 0.105 * y, 0.292), (0, 0.135 * y, 0.290), 0.044, DARK),
            capsule((0, 0.146 * y, 0.27), (0.002, 0.150 * y, 0.13), 0.036, LIGHT),
            capsule((0.016, 0.150 * y, 0.105), (0.125, 0.150 * y, 0.095), 0.032, LIGHT),
            ellipsoid((0.165, 0.150 * y, 0.092), (0.036, 0.036, 0.036), DARK),
        ]
    return "\n".join(parts)
