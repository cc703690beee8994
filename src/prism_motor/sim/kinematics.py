"""Poses and velocities of all bodies of many robots at once, from their states alone.

MuJoCo computes them for one robot at a time; as sensors they would be read one physics step late.
Here the bodies of one level of the tree are computed together for all states, with NumPy, and what
a simulation does and what a motion clip shows go through the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._checks import InputError
from prism_motor.sim.scene import build_model, import_mujoco

if TYPE_CHECKING:
    from prism_motor.sim.robots.robot import Robot


@dataclass(frozen=True)
class Bodies:
    """Frames of B bodies in N states, in world axes; components come first, states last."""

    position: np.ndarray
    """(3, B, N), m."""
    rotation: np.ndarray
    """Rotation matrices, (3, 3, B, N); the second axis counts columns."""
    velocity: np.ndarray
    """Of the frame's origin, (3, B, N), m/s."""
    angular_velocity: np.ndarray
    """(3, B, N), rad/s."""


class Kinematics:
    """Forward kinematics of a robot with a floating base and hinges at their bodies' origins.

    Results have components first and states last, (3, B, N): every operation then runs over long
    rows, which is several times as fast.

    Args:
        robot: The robot.

    Attributes:
        names: Names of the bodies, in the model's order, which is that of all results.
        depth: How many bodies are above each one, by name.
        limits: Joint ranges, (joints, 2), rad.
    """

    def __init__(self, robot: Robot) -> None:
        model = build_model(robot, timestep=0.005)
        _check(model, robot)
        self.names = tuple(model.body(i).name for i in range(1, model.nbody))
        self.limits = model.jnt_range[1:].copy()
        self._joints = len(robot.joints)
        self._parents = model.body_parentid[2:] - 1
        self._offsets = model.body_pos[2:].T[..., None]
        self._centers = model.body_ipos[1:].T[..., None]
        self._mass = model.body_mass[1:]
        # Which bodies carry others: row i has a 1 for i itself and for every body above it.
        self._above = np.eye(len(self.names))
        for body, parent in enumerate(self._parents, start=1):
            self._above[body] += self._above[parent]
        # Rotations within a body, by Rodrigues: T + sin(q) T K + (1 - cos(q)) T K K. A body
        # without a joint has the angle of one that does not exist, which stays zero.
        self._joint_of = np.full(len(self.names), self._joints)
        self._joint_of[model.jnt_bodyid[1:] - 1] = np.arange(self._joints)
        axes = np.concatenate([model.jnt_axis[1:], [(1.0, 0.0, 0.0)]])[self._joint_of[1:]]
        turn = np.moveaxis(rotation_matrix(model.body_quat[2:].T), -1, 0)
        skew = np.cross(axes[:, None], -np.eye(3))
        parts = (turn, turn @ skew, turn @ skew @ skew)
        self._turn, self._sine, self._versine = (np.moveaxis(p, 0, -1)[..., None] for p in parts)
        self._axes = np.concatenate([np.zeros((1, 3)), axes]).T[..., None]
        levels = self._above.sum(1).astype(int) - 1
        self.depth = dict(zip(self.names, levels.tolist(), strict=True))
        self._levels = [np.flatnonzero(levels == d) for d in range(1, levels.max() + 1)]

    def poses(self, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (3, B, N) and rotation matrices (3, 3, B, N) in states.

        Args:
            qpos: (N, 7 + joints): base position, base quaternion wxyz, joint angles.
        """
        count = len(qpos)
        angle = np.zeros((self._joints + 1, count))
        angle[:-1] = qpos[:, 7:].T
        angle = angle[self._joint_of[1:]]
        local = self._turn + self._sine * np.sin(angle)
        local += self._versine * (1 - np.cos(angle))
        rotation = np.empty((3, 3, len(self.names), count))
        rotation[:, :, 0] = rotation_matrix(qpos[:, 3:7].T)
        for bodies in self._levels:
            up, own = rotation[:, :, self._parents[bodies - 1]], local[:, :, bodies - 1]
            rotation[:, :, bodies] = _product(up, own)
        steps = np.empty((3, len(self.names), count))
        steps[:, 0] = qpos[:, :3].T
        steps[:, 1:] = apply(rotation[:, :, self._parents], self._offsets)
        return self._above @ steps, rotation

    def bodies(self, qpos: np.ndarray, qvel: np.ndarray) -> Bodies:
        """Return poses and velocities.

        Args:
            qpos: (N, 7 + joints), as for :meth:`poses`.
            qvel: (N, 6 + joints): base linear (world), base angular (body), joints.
        """
        position, rotation = self.poses(qpos)
        speed = np.zeros((self._joints + 1, len(qvel)))
        speed[:-1] = qvel[:, 6:].T
        # A joint turns its body and all that it carries; a turning body moves what it carries.
        spin = self._joint_axes(rotation) * speed[self._joint_of]
        spin[:, 0] = apply(rotation[:, :, 0], qvel[:, 3:6].T)
        spin = self._above @ spin
        moved = np.empty_like(position)
        moved[:, 0] = qvel[:, :3].T
        moved[:, 1:] = cross(spin[:, self._parents], position[:, 1:] - position[:, self._parents])
        return Bodies(position, rotation, self._above @ moved, spin)

    def center_of_mass(self, qpos: np.ndarray) -> np.ndarray:
        """Return the whole robot's centre of mass, (3, N)."""
        position, rotation = self.poses(qpos)
        centers = position + apply(rotation, self._centers)
        return np.einsum("cbn,b->cn", centers, self._mass / self._mass.sum())

    def center_velocity(self, bodies: Bodies) -> np.ndarray:
        """Return the velocity of the whole robot's centre of mass, (3, N)."""
        arms = apply(bodies.rotation, self._centers)
        centers = bodies.velocity + cross(bodies.angular_velocity, arms)
        return np.einsum("cbn,b->cn", centers, self._mass / self._mass.sum())

    def jacobian(self, qpos: np.ndarray, body: str) -> np.ndarray:
        """Return how joints move a body: (6, joints, N), linear then angular, in world axes."""
        position, rotation = self.poses(qpos)
        index = self.names.index(body)
        axes = self._joint_axes(rotation) * self._above[index][:, None]
        jacobian = np.zeros((6, self._joints + 1, len(qpos)))
        jacobian[:3, self._joint_of] = cross(axes, position[:, index, None] - position)
        jacobian[3:, self._joint_of] = axes
        return jacobian[:, :-1]

    def _joint_axes(self, rotation: np.ndarray) -> np.ndarray:
        """Return the axis of each body's joint in world axes, (3, B, N); zero for the base."""
        return apply(rotation, self._axes)


def _check(model: Any, robot: Robot) -> None:
    hinge = import_mujoco().mjtJoint.mjJNT_HINGE.value
    simple = (
        model.body(robot.base).id == 1
        and model.njnt == 1 + len(robot.joints)
        and (model.jnt_type[1:] == hinge).all()
        and len(set(model.jnt_bodyid.tolist())) == model.njnt
        and not model.jnt_pos.any()
        and not model.qpos0[7:].any()
    )
    if not simple:
        raise InputError(
            f"Kinematics: {robot.name} must have one hinge per body, at the body's origin and with "
            "a zero reference, and no other loose bodies."
        )


# Vectors and matrices have their components along the first axes. ---------------------------------


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    """Return rotation matrices (3, 3, ...) of quaternions wxyz (4, ...)."""
    w, x, y, z = quaternion
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row) for row in rows])


def apply(rotation: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Rotate vectors (3, ...) by matrices (3, 3, ...)."""
    return rotation[:, 0] * vector[0] + rotation[:, 1] * vector[1] + rotation[:, 2] * vector[2]


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return cross products of vectors (3, ...)."""
    ax, ay, az = a
    bx, by, bz = b
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, 0, None] * b[0] + a[:, 1, None] * b[1] + a[:, 2, None] * b[2]
