"""Physical quantities of all robots at one control step, as float32 tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from prism_motor.locomotion.task import TerminationConfig
    from prism_motor.sim.engine import RolloutEngine


@dataclass
class RobotState:
    """What tasks are computed from; N environments, J joints, F feet."""

    base_position: Tensor
    """World position of the base (N, 3)."""
    base_quaternion: Tensor
    """Orientation of the base, wxyz (N, 4)."""
    euler: Tensor
    """Roll, pitch, yaw (N, 3)."""
    gravity: Tensor
    """Direction of gravity in the base frame (N, 3)."""
    velocity: Tensor
    """Linear velocity in the base frame (N, 3)."""
    angular_velocity: Tensor
    """Angular velocity in the base frame (N, 3)."""
    world_velocity: Tensor
    """Linear and angular velocity of the base in world axes (N, 6)."""
    q: Tensor
    """Joint angles (N, J)."""
    dq: Tensor
    """Joint velocities (N, J)."""
    torque: Tensor
    """Clipped motor torques (N, J)."""
    foot_position: Tensor
    """World positions of the foot frames (N, F, 3)."""
    foot_velocity: Tensor
    """World velocities of the foot frames (N, F, 3)."""
    foot_force: Tensor
    """Net contact force on each foot, in world axes, pushing up when positive (N, F, 3)."""
    knee_position: Tensor
    """World positions of the knee frames (N, knees, 3)."""
    base_force: Tensor
    """Net contact force on the base (N, 3)."""


def read_state(engine: RolloutEngine) -> RobotState:
    """Read the current state; sensor values are one physics step old."""
    feet, knees, base = engine.robot.feet, engine.robot.knees, engine.robot.base
    linear, angular = engine.qvel[:, :3], engine.qvel[:, 3:6]
    quaternion = engine.qpos[:, 3:7]
    rotation = rotation_matrix(quaternion)
    velocity = np.einsum("nji,nj->ni", rotation, linear)
    world_angular = np.einsum("nij,nj->ni", rotation, angular)
    # MuJoCo reports the force on the ground.
    force = -engine.sensors(_names((*feet, base), "force"))
    return RobotState(
        base_position=_tensor(engine.qpos[:, :3]),
        base_quaternion=_tensor(quaternion),
        euler=_tensor(euler_angles(rotation)),
        gravity=_tensor(-rotation[:, 2]),
        velocity=_tensor(velocity),
        angular_velocity=_tensor(angular),
        world_velocity=_tensor(np.concatenate([linear, world_angular], axis=1)),
        q=_tensor(engine.qpos[:, 7:]),
        dq=_tensor(engine.qvel[:, 6:]),
        torque=_tensor(engine.torque()),
        foot_position=_tensor(engine.sensors(_names(feet, "position"))),
        foot_velocity=_tensor(engine.sensors(_names(feet, "velocity"))),
        foot_force=_tensor(force[:, :-1]),
        knee_position=_tensor(engine.sensors(_names(knees, "position"))),
        base_force=_tensor(force[:, -1]),
    )


def _names(bodies: tuple[str, ...], quantity: str) -> tuple[str, ...]:
    return tuple(f"{body}_{quantity}" for body in bodies)


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


def has_fallen(state: RobotState, limits: TerminationConfig) -> Tensor:
    """Return which robots (N,) have fallen: base in contact, tilted too far or too low."""
    fallen = state.base_force.norm(dim=-1) > limits.base_force
    if limits.roll is not None:
        fallen |= state.euler[:, 0].abs() > limits.roll
    if limits.pitch is not None:
        fallen |= state.euler[:, 1].abs() > limits.pitch
    if limits.height is not None:
        fallen |= state.base_position[:, 2] < limits.height
    return fallen


# NumPy takes a third of torch's time here: many operations on small arrays.


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    """Return rotation matrices (N, 3, 3) of quaternions wxyz (N, 4)."""
    w, x, y, z = quaternion.T
    twice_x, twice_y, twice_z = (2 * quaternion[:, 1:]).T
    xx, yy, zz = twice_x * x, twice_y * y, twice_z * z
    xy, xz, yz = twice_x * y, twice_x * z, twice_y * z
    wx, wy, wz = w * twice_x, w * twice_y, w * twice_z
    entries = [
        1 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1 - (xx + yy),
    ]  # fmt: skip
    return np.stack(entries, axis=-1).reshape(-1, 3, 3)


def euler_angles(rotation: np.ndarray) -> np.ndarray:
    """Return roll, pitch, yaw (ZYX) of rotation matrices."""
    roll = np.arctan2(rotation[:, 2, 1], rotation[:, 2, 2])
    pitch = np.arcsin((-rotation[:, 2, 0]).clip(-1.0, 1.0))
    yaw = np.arctan2(rotation[:, 1, 0], rotation[:, 0, 0])
    return np.stack([roll, pitch, yaw], axis=-1)
