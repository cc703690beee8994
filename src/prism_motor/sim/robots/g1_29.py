"""Unitree G1 with all 29 joints: legs, waist and arms.

Kinematics, masses, inertias and joint ranges are facts of revision 1.0 of Unitree's published model
(BSD-3-Clause, see NOTICE), drives those of the motion-tracking literature: every motor is a
critically damped spring of 10 Hz on its own rotor, and torque may reach the motor's limit. Legs are
those of ``g1_parts``. Contact geometry is ours: capsules on trunk, head, limbs and hands, so that a
lying robot rests on something. Arms collide with trunk, legs and each other, legs with each other;
neighbouring links never do.

The right side is the exact mirror image of the left; the source has its right shoulder 0.01 mm
closer to the middle.
"""

from __future__ import annotations

import math

from prism_motor.sim.robots.g1_parts import (
    FEET,
    FOOT_OFFSET,
    KNEES,
    LEG,
    STAND_HEIGHT,
    STRAIGHT,
    Link,
    across,
    chain,
    leg_looks,
    open_link,
)
from prism_motor.sim.robots.primitives import (
    ACCENT,
    DARK,
    LIGHT,
    Vector,
    capsule,
    document,
    ellipsoid,
    text,
)
from prism_motor.sim.robots.robot import JointSpec, Robot

_WAIST = (
    Link("waist_yaw", (0, 0, 0), STRAIGHT, 0.214, (0.003494, 0.000233, 0.018034),
         (0.289697, 0.591001, -0.337795, 0.672821), (1.63531e-4, 1.07714e-4, 1.02205e-4),
         "z", (-2.618, 2.618)),
    Link("waist_roll", (-0.0039635, 0, 0.044), STRAIGHT, 0.086, (0, 2.3e-5, 0),
         (0.5, 0.5, -0.5, 0.5), (8.245e-6, 7.079e-6, 6.339e-6), "x", (-0.52, 0.52)),
    Link("torso", (0, 0, 0), STRAIGHT, 7.818, (0.00203158, 0.000339683, 0.184568),
         (0.999803, -6.03319e-5, 0.0198256, 0.00131986), (0.121847, 0.109825, 0.0273735),
         "y", (-0.52, 0.52), joint="waist_pitch"),
)  # fmt: skip

_ARM = (
    Link("shoulder_pitch", (0.0039563, 0.10022, 0.24778),
         (0.990264, 0.139201, 1.38722e-5, -9.86868e-5), 0.718, (0, 0.035892, -0.011628),
         (0.654152, 0.0130458, -0.326267, 0.68225), (4.65864e-4, 4.32842e-4, 4.06394e-4),
         "y", (-3.0892, 2.6704)),
    Link("shoulder_roll", (0, 0.038, -0.013831), (0.990268, -0.139172, 0, 0), 0.643,
         (-0.000227, 0.00727, -0.063243), (0.701256, -0.0196223, -0.00710317, 0.712604),
         (6.91311e-4, 6.18011e-4, 3.88977e-4), "x", (-1.5882, 2.2515)),
    Link("shoulder_yaw", (0, 0.00624, -0.1032), STRAIGHT, 0.734, (0.010773, -0.002949, -0.072009),
         (0.716879, -0.0964829, -0.0679942, 0.687134), (1.06187e-3, 1.03217e-3, 4.00661e-4),
         "z", (-2.618, 2.618)),
    Link("elbow", (0.015783, 0, -0.080518), STRAIGHT, 0.6, (0.064956, 0.004454, -0.010062),
         (0.541765, 0.636132, 0.388821, 0.388129), (4.43035e-4, 4.21612e-4, 2.59353e-4),
         "y", (-1.0472, 2.0944)),
    Link("wrist_roll", (0.1, 0.00188791, -0.01), STRAIGHT, 0.085445,
         (0.0171394, 0.000537591, 4.8864e-7), (0.575338, 0.411667, -0.574906, 0.411094),
         (5.48211e-5, 4.96646e-5, 3.57798e-5), "x", (-1.97222, 1.97222)),
    Link("wrist_pitch", (0.038, 0, 0), STRAIGHT, 0.48405, (0.0229999, -0.00111685, -0.00111658),
         (0.249998, 0.661363, 0.293036, 0.643608), (4.30353e-4, 4.29873e-4, 1.64648e-4),
         "y", (-1.61443, 1.61443)),
    Link("wrist_yaw", (0.046, 0, 0), STRAIGHT, 0.254576, (0.0708244, 0.000191745, 0.00161742),
         (0.510571, 0.526295, 0.468078, 0.493188), (6.46113e-4, 5.59993e-4, 1.47566e-4),
         "z", (-1.61443, 1.61443)),
)  # fmt: skip

HEAD_HEIGHT = 0.35
"""The head's frame above the torso's, m."""

_FREQUENCY, _FRICTION = 20 * math.pi, 0.03
"""Natural frequency of the drives, rad/s, and dry friction of all joints, N m."""

_BIG, _MEDIUM, _ANKLE, _SMALL, _WRIST = 0.025101925, 0.01017752, 0.00721945, 0.003609725, 0.00425
"""Rotor inertia of the motors at the joint, kg m^2; ankles and waist have two small ones each."""

# name: default angle, rotor inertia, effort, velocity
_DRIVES = {
    "hip_pitch": (-0.1, _BIG, 139.0, 20.0),
    "hip_roll": (0.0, _BIG, 139.0, 20.0),
    "hip_yaw": (0.0, _MEDIUM, 88.0, 32.0),
    "knee": (0.3, _BIG, 139.0, 20.0),
    "ankle_pitch": (-0.2, _ANKLE, 50.0, 37.0),
    "ankle_roll": (0.0, _ANKLE, 50.0, 37.0),
    "waist_yaw": (0.0, _MEDIUM, 88.0, 32.0),
    "waist_roll": (0.0, _ANKLE, 50.0, 37.0),
    "waist_pitch": (0.0, _ANKLE, 50.0, 37.0),
    "shoulder_pitch": (0.0, _SMALL, 25.0, 37.0),
    "shoulder_roll": (0.0, _SMALL, 25.0, 37.0),
    "shoulder_yaw": (0.0, _SMALL, 25.0, 37.0),
    "elbow": (0.0, _SMALL, 25.0, 37.0),
    "wrist_roll": (0.0, _SMALL, 25.0, 37.0),
    "wrist_pitch": (0.0, _WRIST, 5.0, 22.0),
    "wrist_yaw": (0.0, _WRIST, 5.0, 22.0),
}

_HARD_WAIST = (300.0, 5.0)
"""Stiffness and damping of the waist's three joints in the default variant."""

# Collision bits. 1 and 2 are the ground's; a geom with the first number of a pair in its contype
# touches those with the same in their conaffinity.
_ARM_ON_BODY, _LEG_ON_LEG, _ARM_ON_ARM = 4, 8, 16
_TRUNK_BITS = (2, 1 + _ARM_ON_BODY)
_LEG_BITS = {1: (2 + _LEG_ON_LEG, 1 + _ARM_ON_BODY), -1: (2, 1 + _ARM_ON_BODY + _LEG_ON_LEG)}
_ARM_BITS = {1: (2 + _ARM_ON_BODY + _ARM_ON_ARM, 1), -1: (2 + _ARM_ON_BODY, 1 + _ARM_ON_ARM)}
_GROUND_BITS = (2, 1)

# link: start, end and radius of its capsule, m
_CAPSULES = {
    "hip_yaw": ((-0.005, 0, 0), (-0.072, 0.002, -0.155), 0.05),
    "knee": ((0.006, 0, -0.002), (0.004, 0, -0.26), 0.04),
    "ankle_roll": ((-0.03, 0, -0.008), (0.10, 0, -0.008), 0.02),
    "shoulder_roll": ((0, 0, -0.005), (0, 0.002, -0.03), 0.042),
    "shoulder_yaw": ((0, 0, 0.04), (0.012, 0, -0.07), 0.034),
    "elbow": ((0.01, 0, -0.004), (0.115, 0.002, -0.01), 0.031),
    "wrist_yaw": ((0.02, 0, 0), (0.10, 0, 0), 0.03),
}

_IMUS = {"pelvis": (0.04525, 0, -0.08339), "torso": (-0.03959, -0.00224, 0.14792)}
"""Places of the inertial sensors in their bodies' frames, m; sites named ``BODY_imu``."""

_TOUCHING = tuple(
    f"{side}_{link}"
    for side in ("left", "right")
    for link in ("hip_yaw", "shoulder_roll", "shoulder_yaw")
)
"""Hip and shoulder links with contact geometry: a tracking robot should not lean on them."""


def g1_29() -> Robot:
    """Return the 29-joint G1 with a stiff waist."""
    return _make("g1-29", _HARD_WAIST)


def g1_29_soft_waist() -> Robot:
    """Return the 29-joint G1 whose waist is as soft as its other joints."""
    return _make("g1-29-soft-waist", None)


def _make(name: str, waist: tuple[float, float] | None) -> Robot:
    leg, middle, arm = ([link.joint or link.name for link in part] for part in (LEG, _WAIST, _ARM))
    names = [
        *(f"left_{link}" for link in leg), *(f"right_{link}" for link in leg), *middle,
        *(f"left_{link}" for link in arm), *(f"right_{link}" for link in arm),
    ]  # fmt: skip
    return Robot(
        name=name,
        xml=document(name, _pelvis()),
        joints=tuple(_joint(joint, waist if joint in middle else None) for joint in names),
        base="pelvis",
        feet=FEET,
        knees=KNEES,
        touching=_TOUCHING,
        foot_offset=FOOT_OFFSET,
        stand_height=STAND_HEIGHT,
        mirror=tuple(names.index(_twin(joint)) for joint in names),
        mirror_sign=tuple(-1 if "roll" in joint or "yaw" in joint else 1 for joint in names),
    )


def _joint(name: str, gains: tuple[float, float] | None) -> JointSpec:
    angle, rotor, effort, velocity = _DRIVES[name.removeprefix("left_").removeprefix("right_")]
    stiffness, damping = gains or (_FREQUENCY**2 * rotor, 4 * _FREQUENCY * rotor)
    return JointSpec(
        name, angle, stiffness, damping, effort, velocity, rotor, friction=_FRICTION, usable=1.0
    )


def _twin(name: str) -> str:
    side, _, rest = name.partition("_")
    return {"left": f"right_{rest}", "right": f"left_{rest}"}.get(side, name)


def _pelvis() -> str:
    """Return the whole robot: legs, waist, torso with arms and head, in the order of the joints."""
    arms = "".join(chain(_ARM, side, _arm) for side in (1, -1))
    trunk = "".join(open_link(link, 0, _trunk(link.name)) for link in _WAIST)
    return f"""
<body name="pelvis" pos="0 0 {STAND_HEIGHT}">
  <freejoint name="root"/>
  <inertial mass="3.813" pos="0 0 -0.07605" quat="1 0 -0.000399148 0"
    diaginertia="0.010549 0.0093089 0.0079184"/>
  {_imu("pelvis")}
  {_contact("pelvis", (0, -0.045, -0.03), (0, 0.045, -0.03), 0.068, _TRUNK_BITS)}
  {capsule((0, -0.055, -0.045), (0, 0.055, -0.045), 0.062, DARK)}
{chain(LEG, 1, _leg)}
{chain(LEG, -1, _leg)}
{trunk}{arms}
<body name="head" pos="0 0 {HEAD_HEIGHT}">
  {_contact("head", (0.006, 0, 0.03), (0.006, 0, 0.08), 0.072, _TRUNK_BITS)}
  {ellipsoid((0.014, 0, 0.066), (0.075, 0.066, 0.09), LIGHT)}
  {ellipsoid((0.039, 0, 0.074), (0.056, 0.060, 0.040), DARK)}
</body>
</body></body></body>
</body>"""


def _imu(body: str) -> str:
    return f'<site name="{body}_imu" pos="{text(_IMUS[body])}" size="0.005" group="4"/>'


def _contact(name: str, start: Vector, end: Vector, radius: float, bits: tuple[int, int]) -> str:
    """Return an invisible capsule that touches the ground and what its bits say."""
    return (
        f'<geom name="{name}_contact" class="collision" type="capsule" contype="{bits[0]}" '
        f'conaffinity="{bits[1]}" fromto="{text(start)} {text(end)}" size="{radius}"/>'
    )


def _limb(name: str, side: int, bits: tuple[int, int]) -> str:
    """Return the contact capsule of a link, if it has one."""
    if name not in _CAPSULES:
        return ""
    start, end, radius = _CAPSULES[name]
    prefix = "left" if side > 0 else "right"
    return _contact(f"{prefix}_{name}", across(start, side), across(end, side), radius, bits)


def _leg(name: str, side: int) -> str:
    return _limb(name, side, _LEG_BITS[side]) + leg_looks(name, side)


def _arm(name: str, side: int) -> str:
    # The shoulder always overlaps the torso, which is no contact.
    bits = _GROUND_BITS if name == "shoulder_roll" else _ARM_BITS[side]
    return _limb(name, side, bits) + _arm_looks(name, side)


def _arm_looks(name: str, side: int) -> str:
    y = float(side)
    if name == "shoulder_pitch":
        return capsule((0, 0.002 * y, 0), (0, 0.034 * y, -0.010), 0.042, DARK)
    if name == "shoulder_roll":
        return capsule((0, 0.002 * y, -0.012), (0, 0.006 * y, -0.085), 0.036, LIGHT)
    if name == "shoulder_yaw":
        return capsule((0, 0, -0.008), (0.012, 0, -0.068), 0.033, LIGHT)
    if name == "elbow":
        return capsule((0, -0.02, 0), (0, 0.02, 0), 0.033, DARK) + capsule(
            (0.018, 0, -0.003), (0.088, 0.0015 * y, -0.009), 0.030, LIGHT
        )
    if name == "wrist_roll":
        return capsule((0.006, 0, 0), (0.030, 0, 0), 0.026, DARK)
    if name == "wrist_pitch":
        return capsule((0.006, 0, 0), (0.034, 0, 0), 0.027, LIGHT)
    return ellipsoid((0.062, 0, 0), (0.058, 0.022, 0.034), DARK) + ellipsoid(
        (0.045, 0.018 * y, 0.028), (0.030, 0.012, 0.012), DARK
    )


def _trunk(name: str) -> str:
    if name == "waist_yaw":
        return capsule((0, 0, 0), (0, 0, 0.05), 0.064, DARK)
    if name == "waist_roll":
        return ""
    parts = [
        _imu("torso"),
        _contact("torso", (0, 0, 0.08), (0, 0, 0.25), 0.095, _TRUNK_BITS),
        ellipsoid((0.008, 0, 0.156), (0.088, 0.112, 0.165), LIGHT),
        ellipsoid((0.084, 0, 0.196), (0.020, 0.034, 0.034), ACCENT),
        capsule((0.004, 0, 0.316), (0.009, 0, 0.356), 0.035, DARK),
    ]
    return "\n".join(parts)
