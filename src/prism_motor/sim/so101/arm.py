"""The arm as an MjSpec, from the numbers of its published description.

Every body is aligned with the base when all joints are at zero (upper arm up, forearm forward), so
that one table describes it; only the gripper has a twist, because the range of its roll is not
symmetric. The base looks along x, y is left and the table is at z = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from prism_motor._checks import check_choice
from prism_motor._ranges import Checked, above, between
from prism_motor.sim.scene import import_mujoco
from prism_motor.sim.so101.shapes import SHAPES, add_shape
from prism_motor.sim.so101.units import HIGH, JOINTS, LOW

Vector = tuple[float, ...]


@dataclass(frozen=True)
class ArmLink:
    """A body with its joint and inertia; lengths in m, in the frame of the parent or the body."""

    name: str
    """Name of the body."""
    position: Vector
    """Origin in the parent."""
    mass: float
    """Mass, kg."""
    centre: Vector
    """Centre of mass."""
    inertia: Vector
    """About the centre of mass: xx yy zz xy xz yz, 1e-6 kg m^2."""
    axis: Vector = ()
    """Axis of the joint; none: fixed to the world."""
    turn: Vector = (1.0, 0.0, 0.0, 0.0)
    """Orientation in the parent, w x y z."""


PARTS = (
    ArmLink(
        "base", (0, 0, 0), 0.147, (0.01372, 0, 0.03348),
        (114.686, 136.117, 130.364, -0.46, 4.97, 0.1),
    ),
    ArmLink(
        "shoulder", (0.0388353, 0, 0.0624), 0.100006, (0.03076, 0, 0.02527),
        (83.759, 81.040, 23.978, -0.076, -1.163, -0.155), axis=(0, 0, -1),
    ),
    ArmLink(
        "upper_arm", (0.0303992, -0.0182778, 0.0542), 0.103, (0.00839, 0.01841, 0.08985),
        (147.318, 142.487, 40.800, -0.009, -19.782, 0.040), axis=(0, 1, 0),
    ),
    ArmLink(
        "lower_arm", (0.028, 0, 0.11257), 0.104, (0.09807, 0.01828, 0.00324),
        (28.744, 145.290, 159.844, -1.264, -7.412, -0.049), axis=(0, 1, 0),
    ),
    ArmLink(
        "wrist", (0.1349, 0, 0.0052), 0.079, (0.03861, 0.02812, 0.0001),
        (25.391, 21.000, 36.826, -3.641, 0.018, 0.053), axis=(0, 1, 0),
    ),
    ArmLink(
        "gripper", (0.0611, 0.0181, 0), 0.087, (0.025187, 0.000245, 0.000214),
        (34.506, 43.366, 27.509, 0.052, 5.735, -0.335), axis=(-1, 0, 0),
        turn=(0.99970379, 0.02433736, 0, 0),
    ),
    ArmLink(
        "jaw", (0.0234, 0.0188, 0.0202), 0.012, (0.03002, -0.01928, -0.00157),
        (1.890, 5.287, 6.614, -0.11, 0.32, -0.006), axis=(0, -1, 0),
    ),
)  # fmt: skip
"""From the base to the moving jaw; each is the child of the one before."""

TIP = (0.104, 0.0, -0.010)
"""Tip of the fixed jaw in the gripper, where the site ``tip`` is."""

WRIST_CAMERA = (0.045, 0.055, 0.0)
WRIST_CAMERA_AXES = ((0.0, 0.0, 1.0), (0.5396, 0.8419, 0.0))
"""Position of the published camera mount in the gripper, and the x and y axes of the camera."""

TORQUE, GRIPPER_TORQUE = 2.94, 1.47
"""Most torque of a servo, N m; LeRobot limits that of the gripper to a half."""


@dataclass(frozen=True)
class ServoSettings(Checked, section="servos"):
    """A Feetech STS3215 as a position controller."""

    kp: Annotated[float, above(0, 1e5)]
    """Stiffness, N m/rad."""
    kv: Annotated[float, between(0, 1e4)]
    """Damping by the controller, N m s/rad."""
    damping: Annotated[float, between(0, 100)] = 0.60
    """Damping by motor and gears, N m s/rad; with the torque it gives the speed without load."""
    friction: Annotated[float, between(0, 10)] = 0.052
    """Dry friction, N m."""
    armature: Annotated[float, between(0, 10)] = 0.028
    """Inertia of the rotor behind the gears, kg m^2."""


SERVOS = {"soft": ServoSettings(kp=17.8, kv=0.0), "stiff": ServoSettings(kp=998.22, kv=2.731)}
"""Presets: ``soft`` agrees with the stiffness measured on hardware, ``stiff`` follows from the
formula of a DC motor and is used elsewhere for transfer from simulation."""


def find_servos(name: str, kp: float | None = None) -> ServoSettings:
    """Return a preset by name.

    Args:
        name: ``soft`` or ``stiff``.
        kp: Another stiffness, N m/rad; default: the preset's.
    """
    found = SERVOS[check_choice("servos", name, SERVOS)]
    if kp is None:
        return found
    return ServoSettings(kp, found.kv, found.damping, found.friction, found.armature)


def add_arm(spec: Any, servos: ServoSettings) -> None:
    """Add the arm to a scene: bodies, geometry, servos, the site ``tip`` and the wrist camera.

    Args:
        spec: The scene's ``MjSpec``.
        servos: What drives the joints.
    """
    mujoco = import_mujoco()
    parent = spec.worldbody
    joints = iter(zip(JOINTS, LOW, HIGH, strict=True))
    for part in PARTS:
        body = parent.add_body(name=part.name, pos=part.position, quat=part.turn)
        body.explicitinertial = True
        body.mass, body.ipos = part.mass, part.centre
        body.fullinertia = [1e-6 * value for value in part.inertia]
        if part.axis:
            name, low, high = next(joints)
            body.add_joint(
                name=name,
                type=mujoco.mjtJoint.mjJNT_HINGE,
                axis=part.axis,
                range=(low, high),
                limited=mujoco.mjtLimited.mjLIMITED_TRUE,
                damping=servos.damping,
                frictionloss=servos.friction,
                armature=servos.armature,
            )
            torque = GRIPPER_TORQUE if name == "gripper" else TORQUE
            _add_servo(spec, name, servos, (low, high), torque)
        for shape in SHAPES[part.name]:
            add_shape(body, shape)
        parent = body
    gripper = spec.body("gripper")
    gripper.add_site(name="tip", pos=TIP, size=(0.002, 0.002, 0.002), group=4)
    gripper.add_camera(
        name="wrist", pos=WRIST_CAMERA, quat=camera_turn(*WRIST_CAMERA_AXES), fovy=60.0
    )


def _add_servo(spec: Any, joint: str, servos: ServoSettings, ends: Vector, torque: float) -> None:
    mujoco = import_mujoco()
    motor = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    motor.set_to_position(kp=servos.kp, kv=servos.kv)
    motor.ctrlrange, motor.ctrllimited = ends, mujoco.mjtLimited.mjLIMITED_TRUE
    motor.forcerange, motor.forcelimited = (-torque, torque), mujoco.mjtLimited.mjLIMITED_TRUE


def camera_turn(x: Vector, y: Vector) -> list[float]:
    """Return the quaternion (w x y z) of a camera whose picture's right is x and up is y."""
    mujoco = import_mujoco()
    right = np.array(x) / np.linalg.norm(x)
    up = np.array(y) - right * (right @ y)
    up /= np.linalg.norm(up)
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.stack([right, up, np.cross(right, up)], axis=1).ravel())
    return quaternion.tolist()
