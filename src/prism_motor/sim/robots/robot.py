"""What the rest of the package needs to know about a robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TORQUE_FRACTION = 0.85
"""Share of a motor's limit that the controller may use, unless a joint says otherwise."""

PerJoint = float | Mapping[str, float]
"""One value for all joints, or values by joint name."""


@dataclass(frozen=True)
class JointSpec:
    """One actuated joint."""

    name: str
    """Name in the model."""
    default: float
    """Angle of the default pose, rad."""
    stiffness: float
    """Proportional gain of the PD controller, N m/rad."""
    damping: float
    """Derivative gain, N m s/rad."""
    effort: float
    """Torque limit of the motor, N m."""
    velocity: float | None = None
    """Velocity limit of the motor, rad/s; ``None`` if unknown. Simulations do not apply it."""
    armature: float | None = None
    """Inertia of the rotor at the joint, kg m^2; ``None`` for the model's own."""
    friction: float | None = None
    """Dry friction of the joint, N m; ``None`` for the model's own."""
    usable: float = TORQUE_FRACTION
    """Share of the motor's limit that the controller may use."""

    @property
    def torque_limit(self) -> float:
        """Torque that the controller may use, N m."""
        return self.usable * self.effort


@dataclass(frozen=True)
class Robot:
    """A legged robot: its model and the names that tasks refer to.

    Simulation, sensors and position servos are added to the model by
    :func:`prism_motor.sim.scene.make_scene`.
    """

    name: str
    """The name that tasks use."""
    joints: tuple[JointSpec, ...]
    """Actuated joints in policy order, which is the order of the model."""
    base: str
    """Body that carries the free joint."""
    feet: tuple[str, ...]
    """Foot bodies, whose frame origins are tracked; in left-right pairs if there are any."""
    foot_offset: float
    """Height of the foot frame above the sole, m."""
    stand_height: float
    """Height of the base above the ground in the default pose, m."""
    knees: tuple[str, ...] = ()
    """Knee bodies, same order as the feet."""
    touching: tuple[str, ...] = ()
    """Further bodies whose net contact force is measured, besides feet and base."""
    mirror: tuple[int, ...] | None = None
    """Which joint each joint maps to under left-right mirroring; ``None`` if unknown."""
    mirror_sign: tuple[int, ...] | None = None
    """Sign of the angle under mirroring: roll and yaw flip."""
    xml: str = ""
    """The model as MJCF, unless it is in a file."""
    file: str = ""
    """The MJCF file of the model; meshes and includes are found relative to it."""
    locked: tuple[tuple[str, float], ...] = ()
    """Joints of the model that are fixed at an angle (rad), as if welded."""

    @classmethod
    def from_mjcf(
        cls,
        path: str | Path,
        *,
        name: str,
        feet: tuple[str, ...],
        base: str | None = None,
        knees: tuple[str, ...] = (),
        joints: tuple[str, ...] | None = None,
        default_pose: Mapping[str, float] | str | None = None,
        stiffness: PerJoint | None = None,
        damping: PerJoint | None = None,
        effort: PerJoint | None = None,
        velocity: PerJoint | None = None,
        mirror: Mapping[str, str] | None = None,
    ) -> Robot:
        """Read a robot from any MJCF file.

        Joint names, their order, ranges, gains and torque limits come from the model, which is
        checked; what it lacks is given here. Motors become position servos with these gains.

        Args:
            path: The file. Meshes and includes are found relative to it.
            name: The name that tasks use.
            feet: Bodies that walk on the ground, e.g. ``("left_foot", "right_foot")``; left and
                right of each pair in sequence.
            base: Body that carries the free joint; found if not given.
            knees: Knee bodies, in the order of the feet; used only by the ``knee_distance`` reward.
            joints: Joints that the policy moves, in any order; all by default. The others are fixed
                at their angle in the default pose.
            default_pose: Joint angles (rad) by name, zero for the rest, or the name of a keyframe;
                the model's initial pose by default.
            stiffness: Proportional gain, N m/rad; by default that of the model's position servos.
            damping: Derivative gain, N m s/rad; likewise.
            effort: Torque limit of the motors, N m; by default that of the model's actuators. The
                controller uses up to 85 % of it.
            velocity: Velocity limit of the motors, rad/s, which models do not have; an exported
                policy stops where a joint is faster. Unknown by default.
            mirror: What each joint maps to under left-right mirroring, with ``-`` before the name
                if the angle changes sign: ``{"left_knee": "right_knee", "waist": "-waist"}``.
        """
        from prism_motor.sim.mjcf import read_robot

        return read_robot(
            Path(path), name=name, feet=tuple(feet), base=base, knees=tuple(knees), joints=joints,
            default_pose=default_pose, stiffness=stiffness, damping=damping, effort=effort,
            velocity=velocity, mirror=mirror,
        )  # fmt: skip

    @property
    def default_pose(self) -> np.ndarray:
        """Default joint angles in policy order."""
        return np.array([joint.default for joint in self.joints])

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints in policy order."""
        return [joint.name for joint in self.joints]
