"""Unitree G1 with twelve leg joints; waist and arms are locked in a natural pose.

The legs are those of ``g1_parts``. Masses, torque and velocity limits are facts of Unitree's
published model (BSD-3-Clause, see NOTICE). Geometry is ours: four small spheres under each foot, a
few primitives on the trunk, no self-collision.
"""

from __future__ import annotations

from prism_motor.sim.robots.g1_parts import (
    FEET,
    FOOT_OFFSET,
    KNEES,
    LEG,
    STAND_HEIGHT,
    chain,
    leg_looks,
)
from prism_motor.sim.robots.primitives import (
    ACCENT,
    DARK,
    LIGHT,
    capsule,
    document,
    ellipsoid,
    text,
)
from prism_motor.sim.robots.robot import JointSpec, Robot

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
        feet=FEET,
        knees=KNEES,
        foot_offset=FOOT_OFFSET,
        stand_height=STAND_HEIGHT,
        mirror=tuple(range(6, 12)) + tuple(range(6)),
        mirror_sign=tuple(-1 if ("roll" in n or "yaw" in n) else 1 for n in names) * 2,
    )


def _pelvis() -> str:
    return f"""
<body name="pelvis" pos="0 0 {STAND_HEIGHT}">
  <freejoint name="root"/>
  <inertial mass="{_PELVIS["mass"]}" pos="{text(_PELVIS["center"])}"
    quat="{text(_PELVIS["principal"])}" diaginertia="{text(_PELVIS["inertia"])}"/>
{_trunk()}
{chain(LEG, 1, leg_looks)}
{chain(LEG, -1, leg_looks)}
</body>"""


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
