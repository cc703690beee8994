"""Where the tip of the fixed jaw is for joint angles, and joint angles for a place of the tip."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prism_motor._checks import InputError
from prism_motor.sim.scene import import_mujoco
from prism_motor.sim.so101.arm import PARTS, SERVOS, TIP, add_arm
from prism_motor.sim.so101.units import HIGH, JOINTS, LOW

Array = NDArray[np.float64]

_SHOULDER, _UPPER, _LOWER, _WRIST, _GRIPPER = (part.position for part in PARTS[1:6])
PAN_AXIS = _SHOULDER[0]
"""Where the axis of shoulder_pan is on x, m."""

_TWIST = 2 * math.asin(PARTS[5].turn[1])
_UPPER_LENGTH, _UPPER_ANGLE = math.hypot(_LOWER[0], _LOWER[2]), math.atan2(_LOWER[0], _LOWER[2])
_LOWER_LENGTH, _LOWER_ANGLE = math.hypot(_WRIST[0], _WRIST[2]), math.atan2(_WRIST[2], _WRIST[0])
_SLACK = 1e-9


class UnreachableError(InputError):
    """The tip cannot be where it was asked to be."""


class GripperPose(NamedTuple):
    """Pose of the gripper."""

    position: Array
    """Tip of the fixed jaw, m."""
    quaternion: Array
    """Orientation, w x y z."""


def inverse(
    position: ArrayLike, pitch: float, *, roll: float = 0.0, opening: float = LOW[5]
) -> Array:
    """Return the joint angles (6) that put the tip at a place, with the elbow up.

    Args:
        position: Where the tip of the fixed jaw shall be, m.
        pitch: How far the gripper points down, rad; pi/2: straight down.
        roll: Angle of wrist_roll, rad.
        opening: Angle of the gripper, rad; default: closed.
    """
    x, y, z = np.asarray(position, dtype=np.float64)
    # Seen along the roll axis, the tip is beside it by its offset, turned by twist and roll.
    turned = _TWIST - roll
    side = _UPPER[1] + _GRIPPER[1] - TIP[2] * math.sin(turned)
    forward, up = _GRIPPER[0] + TIP[0], TIP[2] * math.cos(turned)
    # Pan until the tip is in the arm's plane, which passes the pan axis at a distance.
    away = math.hypot(x - _SHOULDER[0], y)
    if away <= abs(side):
        raise _unreachable(position, pitch, "it is on the axis of the shoulder")
    reach = math.sqrt(away**2 - side**2)
    pan = -(math.atan2(y, x - _SHOULDER[0]) - math.asin(side / away))
    # In that plane, two links lead from the shoulder to the wrist.
    ahead = reach - (math.cos(pitch) * forward + math.sin(pitch) * up) - _UPPER[0]
    above = z - (-math.sin(pitch) * forward + math.cos(pitch) * up) - _SHOULDER[2] - _UPPER[2]
    distance = math.hypot(ahead, above)
    one, two = _UPPER_LENGTH, _LOWER_LENGTH
    if not abs(one - two) < distance < one + two:
        raise _unreachable(position, pitch, "it is too far away or too near")
    at_shoulder = math.acos((one**2 + distance**2 - two**2) / (2 * one * distance))
    at_elbow = math.acos((one**2 + two**2 - distance**2) / (2 * one * two))
    first = math.atan2(above, ahead) + at_shoulder
    second = first - math.pi + at_elbow
    lift = math.pi / 2 - _UPPER_ANGLE - first
    elbow = _LOWER_ANGLE - second - lift
    found = np.array([pan, lift, elbow, pitch - lift - elbow, roll, opening])
    outside = (found < LOW - _SLACK) | (found > HIGH + _SLACK)
    if outside.any():
        joint = int(np.flatnonzero(outside)[0])
        raise _unreachable(
            position, pitch,
            f"{JOINTS[joint]} would be at {math.degrees(found[joint]):.0f} degrees, beyond "
            f"{math.degrees(LOW[joint]):.0f} to {math.degrees(HIGH[joint]):.0f}",
        )  # fmt: skip
    return found


def _unreachable(position: ArrayLike, pitch: float, why: str) -> UnreachableError:
    place = ", ".join(f"{value:.3f}" for value in np.asarray(position, dtype=float))
    return UnreachableError(
        f"The tip cannot reach ({place}) m with the gripper {math.degrees(pitch):.0f} degrees "
        f"down: {why}. Choose a nearer place or another pitch."
    )


def forward(radians: ArrayLike) -> GripperPose:
    """Return the pose of the gripper for joint angles (6)."""
    mujoco = import_mujoco()
    model, data = _bare_arm()
    data.qpos[:] = np.asarray(radians, dtype=np.float64)
    mujoco.mj_kinematics(model, data)
    return GripperPose(data.site("tip").xpos.copy(), data.body("gripper").xquat.copy())


def gravity_torques(radians: ArrayLike) -> Array:
    """Return the torques (6) that hold the arm still at joint angles, N m."""
    mujoco = import_mujoco()
    model, data = _bare_arm()
    data.qpos[:], data.qvel[:] = np.asarray(radians, dtype=np.float64), 0.0
    mujoco.mj_forward(model, data)
    return data.qfrc_bias.copy()


def against_gravity(radians: ArrayLike, kp: float) -> Array:
    """Return the targets (6, rad) at which servos hold the arm at joint angles despite its weight.

    Args:
        radians: Where the joints shall be (6).
        kp: Stiffness of the servos, N m/rad.
    """
    return np.asarray(radians, dtype=np.float64) + gravity_torques(radians) / kp


@cache
def _bare_arm() -> tuple[Any, Any]:
    mujoco = import_mujoco()
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    add_arm(spec, SERVOS["soft"])
    model = spec.compile()
    return model, mujoco.MjData(model)
