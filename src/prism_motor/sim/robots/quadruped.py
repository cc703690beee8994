"""A twelve-kilogram quadruped of our own design, with three joints per leg.

Hip roll (abduction), hip pitch and knee per leg; knees point backward. Legs come in the order front
left, front right, rear left, rear right, so that feet form left-right pairs. Every link has the
mass and inertia of a solid box of its size. The front left leg is the template, the others are its
mirror images.
"""

from __future__ import annotations

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

# prefix: front (1) or rear (-1), left (1) or right (-1)
_LEGS = {
    "front_left": (1, 1),
    "front_right": (1, -1),
    "rear_left": (-1, 1),
    "rear_right": (-1, -1),
}

# name: default angle, stiffness, damping, effort, velocity
_DRIVES = {
    "hip_roll": (0.0, 50.0, 1.2, 24.0, 30.0),
    "hip_pitch": (0.75, 50.0, 1.2, 24.0, 30.0),
    "knee": (-1.5, 60.0, 1.5, 36.0, 30.0),
}

_RANGES = {"hip_roll": (-0.7, 0.7), "hip_pitch": (-1.0, 2.6), "knee": (-2.7, -0.5)}
"""Joint ranges, rad; hip roll is symmetric, so all legs share them."""

_TRUNK_MASS, _TRUNK_SIZE = 6.0, (0.42, 0.17, 0.11)
_HIP, _ABDUCTION = (0.19, 0.055), 0.075
"""Hip in the trunk's frame (x, y), and from there out to the thigh, m."""
_THIGH, _SHANK, _FOOT_RADIUS = 0.20, 0.20, 0.022

_STAND_HEIGHT = 0.3147
"""Base above the ground in the default pose, feet right under the hips, m."""


def quadruped() -> Robot:
    """Return the 12-joint quadruped."""
    joints = tuple(JointSpec(f"{leg}_{name}", *_DRIVES[name]) for leg in _LEGS for name in _DRIVES)
    return Robot(
        name="quadruped",
        xml=document("quadruped", _trunk()),
        joints=joints,
        base="trunk",
        feet=tuple(f"{leg}_foot" for leg in _LEGS),
        knees=tuple(f"{leg}_knee" for leg in _LEGS),
        foot_offset=_FOOT_RADIUS,
        stand_height=_STAND_HEIGHT,
        mirror=(3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8),
        mirror_sign=(-1, 1, 1) * 4,
    )


def _inertial(mass: float, center: Vector, size: Vector) -> str:
    """Return mass and inertia of a solid box with edges ``size``."""
    x, y, z = size
    moments = tuple(mass / 12 * r for r in (y * y + z * z, x * x + z * z, x * x + y * y))
    return f'<inertial mass="{mass}" pos="{text(center)}" diaginertia="{text(moments)}"/>'


def _trunk() -> str:
    legs = "\n".join(_leg(name, front, side) for name, (front, side) in _LEGS.items())
    return f"""
<body name="trunk" pos="0 0 {_STAND_HEIGHT}">
  <freejoint name="root"/>
  {_inertial(_TRUNK_MASS, (0, 0, 0), _TRUNK_SIZE)}
  <geom name="trunk_contact" class="collision" type="box"
    size="{text(tuple(edge / 2 for edge in _TRUNK_SIZE))}"/>
  {_trunk_looks()}
{legs}
</body>"""


def _trunk_looks() -> str:
    """Return a light shell on a dark keel, a head with a visor in front, a handle on the back."""
    parts = [
        box((0, 0, -0.012), (0.175, 0.062, 0.036), DARK),
        capsule((-0.07, 0, 0.066), (0.07, 0, 0.066), 0.011, DARK),
        ellipsoid((0.235, 0, 0.026), (0.052, 0.056, 0.042), LIGHT),
        ellipsoid((0.262, 0, 0.030), (0.030, 0.043, 0.022), DARK),
        ellipsoid((-0.19, 0, 0.016), (0.030, 0.055, 0.036), DARK),
    ]
    for y in (1.0, -1.0):
        parts += [
            capsule((-0.15, 0.03 * y, 0.022), (0.15, 0.03 * y, 0.022), 0.038, LIGHT),
            capsule((-0.11, 0.069 * y, 0.018), (0.11, 0.069 * y, 0.018), 0.008, ACCENT),
            ellipsoid((0.288, 0.017 * y, 0.034), (0.006, 0.007, 0.007), ACCENT),
        ]
    return "\n".join(parts)


def _leg(name: str, front: int, side: int) -> str:
    def joint(part: str, axis: str) -> str:
        low, high = _RANGES[part]
        return f'<joint name="{name}_{part}" axis="{axis}" range="{low} {high}"/>'

    x, y, out = front * _HIP[0], side * _HIP[1], side * _ABDUCTION
    return f"""
<body name="{name}_hip_roll" pos="{x} {y} 0">
  {_inertial(0.55, (0, side * 0.02, 0), (0.09, 0.08, 0.08))}
  {joint("hip_roll", "1 0 0")}
  {capsule((-front * 0.028, 0, 0), (front * 0.030, 0, 0), 0.040, DARK)}
  {capsule((0, 0, 0), (0, out - side * 0.03, 0), 0.030, LIGHT)}
  <body name="{name}_hip_pitch" pos="0 {out} 0">
    {_inertial(0.75, (0, -side * 0.02, -0.04), (0.07, 0.07, 0.16))}
    {joint("hip_pitch", "0 1 0")}
    {capsule((0, -side * 0.022, 0), (0, side * 0.010, 0), 0.042, DARK)}
    {ellipsoid((0, side * 0.048, 0), (0.026, 0.008, 0.026), ACCENT)}
    {capsule((0, 0, -0.035), (0, 0, -_THIGH + 0.03), 0.028, LIGHT)}
    <body name="{name}_knee" pos="0 0 {-_THIGH}">
      {_inertial(0.18, (0, 0, -0.09), (0.025, 0.025, 0.18))}
      {joint("knee", "0 1 0")}
      {capsule((0, -0.022, 0), (0, 0.022, 0), 0.026, DARK)}
      {capsule((0, 0, -0.01), (0.008, 0, -0.10), 0.016, LIGHT)}
      {capsule((0.008, 0, -0.10), (0, 0, -_SHANK), 0.012, DARK)}
      <body name="{name}_foot" pos="0 0 {-_SHANK}">
        {_inertial(0.04, (0, 0, 0), (0.035, 0.035, 0.035))}
        {sole(f"{name}_sole_0", (0, 0, 0), _FOOT_RADIUS)}
        {ellipsoid((0, 0, 0), (_FOOT_RADIUS,) * 3, ACCENT)}
      </body>
    </body>
  </body>
</body>"""
