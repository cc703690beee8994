"""Physical quantities of all robots at one control step, as float32 tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prism.sim.engine import RolloutEngine


@dataclass
class RobotState:
    """What the task is computed from; N environments, J joints, F feet."""

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
    """World positions of the knee frames (N, F, 3)."""
    base_force: Tensor
    """Net contact force on the base (N, 3)."""


def read_state(engine: RolloutEngine) -> RobotState:
    """Read the present state; sensor values are one physics step old."""
    robot = engine.robot
    qpos, qvel = _tensor(engine.qpos), _tensor(engine.qvel)
    rotation = rotation_matrix(qpos[:, 3:7])
    inverse = rotation.transpose(-1, -2)
    linear, angular = qvel[:, :3], qvel[:, 3:6]

    def stacked(bodies: tuple[str, ...], quantity: str) -> Tensor:
        return _tensor(np.stack([engine.sensor(f"{body}_{quantity}") for body in bodies], axis=1))

    return RobotState(
        base_position=qpos[:, :3],
        base_quaternion=qpos[:, 3:7],
        euler=euler_angles(rotation),
        gravity=-rotation[:, 2, :],
        velocity=(inverse @ linear.unsqueeze(-1)).squeeze(-1),
        angular_velocity=angular,
        world_velocity=torch.cat([linear, (rotation @ angular.unsqueeze(-1)).squeeze(-1)], dim=-1),
        q=qpos[:, 7:],
        dq=qvel[:, 6:],
        torque=_tensor(engine.torque()),
        foot_position=stacked(robot.feet, "position"),
        foot_velocity=stacked(robot.feet, "velocity"),
        foot_force=-stacked(robot.feet, "force"),  # MuJoCo reports the force on the ground
        knee_position=stacked(robot.knees, "position"),
        base_force=-_tensor(engine.sensor(f"{robot.base}_force")),
    )


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).float()


def rotation_matrix(quaternion: Tensor) -> Tensor:
    """Return rotation matrices (N, 3, 3) of quaternions wxyz (N, 4)."""
    w, x, y, z = quaternion.unbind(-1)
    return torch.stack(
        [
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
        ],
        dim=-1,
    ).view(-1, 3, 3)  # fmt: skip


def euler_angles(rotation: Tensor) -> Tensor:
    """Return roll, pitch, yaw (ZYX) of rotation matrices."""
    roll = torch.atan2(rotation[:, 2, 1], rotation[:, 2, 2])
    pitch = torch.asin((-rotation[:, 2, 0]).clamp(-1.0, 1.0))
    yaw = torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0])
    return torch.stack([roll, pitch, yaw], dim=-1)
