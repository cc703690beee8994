"""Physical quantities of all robots at one control step, as float32 tensors.

Each engine has its own reader: NumPy where its states are arrays, torch where they are tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from prism_motor.locomotion.task import TerminationConfig
    from prism_motor.sim.engine import RolloutEngine
    from prism_motor.sim.engines import Engine
    from prism_motor.sim.warp_engine import WarpEngine


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


class StateReader(Protocol):
    """Reads what tasks need from an engine."""

    def read(self) -> RobotState:
        """Read the current state; sensor values are one physics step old."""
        ...

    def to_body(self, vectors: Tensor) -> Tensor:
        """Turn vectors (N, 3) from world axes to those of the bases."""
        ...

    def foot_heights(self) -> Tensor:
        """Return the height of the foot frames, (N, F)."""
        ...


def make_reader(engine: Engine) -> StateReader:
    """Return the reader of an engine."""
    if isinstance(engine.qpos, np.ndarray):
        return ArrayReader(engine)  # type: ignore[arg-type]
    return TensorReader(engine)  # type: ignore[arg-type]


class ArrayReader:
    """Reads the CPU engine with NumPy, in float64, at a third of torch's time.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: RolloutEngine) -> None:
        self._engine = engine
        feet, knees, base = engine.robot.feet, engine.robot.knees, engine.robot.base
        # All sensors in one look, in this order.
        self._sensors = (
            *_names((*feet, base), "force"),
            *_names(feet, "position"),
            *_names(feet, "velocity"),
            *_names(knees, "position"),
        )
        count = len(feet)
        self._cuts = np.cumsum([count, 1, count, count]).tolist()

    def read(self) -> RobotState:
        """Read the current state; nothing in it shares memory with the engine."""
        engine = self._engine
        linear, angular = engine.qvel[:, :3], engine.qvel[:, 3:6]
        quaternion = engine.qpos[:, 3:7]
        rotation = rotation_matrix(quaternion)
        velocity = np.einsum("nji,nj->ni", rotation, linear)
        world_angular = np.einsum("nij,nj->ni", rotation, angular)
        found = engine.sensors(self._sensors)
        feet, base, placed, moved = self._cuts
        force = -found[:, :base]  # MuJoCo reports the force on the ground
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
            foot_position=_tensor(found[:, base:placed]),
            foot_velocity=_tensor(found[:, placed:moved]),
            foot_force=_tensor(force[:, :feet]),
            knee_position=_tensor(found[:, moved:]),
            base_force=_tensor(force[:, feet]),
        )

    def to_body(self, vectors: Tensor) -> Tensor:
        """Turn vectors to the axes of the bases."""
        to_world = rotation_matrix(self._engine.qpos[:, 3:7])
        return torch.from_numpy(np.einsum("nji,nj->ni", to_world, vectors.double().numpy()))

    def foot_heights(self) -> Tensor:
        """Return the height of the foot frames."""
        positions = self._engine.sensors(_names(self._engine.robot.feet, "position"))
        return torch.from_numpy(positions[:, :, 2]).float()


class TensorReader:
    """Reads the GPU engine with torch, in float32, on its device.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: WarpEngine) -> None:
        self._engine = engine

    def read(self) -> RobotState:
        """Read the current state; nothing in it shares memory with the engine."""
        engine = self._engine
        feet, knees, base = engine.robot.feet, engine.robot.knees, engine.robot.base
        qpos, qvel = engine.qpos.clone(), engine.qvel.clone()
        linear, angular = qvel[:, :3], qvel[:, 3:6]
        rotation = rotation_tensor(qpos[:, 3:7])
        force = -engine.sensors(_names((*feet, base), "force"))
        turned = (rotation * angular.unsqueeze(1)).sum(2)
        return RobotState(
            base_position=qpos[:, :3],
            base_quaternion=qpos[:, 3:7],
            euler=torch.stack(
                [
                    torch.atan2(rotation[:, 2, 1], rotation[:, 2, 2]),
                    torch.asin((-rotation[:, 2, 0]).clamp(-1.0, 1.0)),
                    torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0]),
                ],
                dim=-1,
            ),
            gravity=-rotation[:, 2],
            velocity=(rotation * linear.unsqueeze(2)).sum(1),
            angular_velocity=angular,
            world_velocity=torch.cat([linear, turned], dim=1),
            q=qpos[:, 7:],
            dq=qvel[:, 6:],
            torque=engine.torque(),
            foot_position=engine.sensors(_names(feet, "position")),
            foot_velocity=engine.sensors(_names(feet, "velocity")),
            foot_force=force[:, :-1],
            knee_position=engine.sensors(_names(knees, "position")),
            base_force=force[:, -1],
        )

    def to_body(self, vectors: Tensor) -> Tensor:
        """Turn vectors to the axes of the bases."""
        return (rotation_tensor(self._engine.qpos[:, 3:7]) * vectors.unsqueeze(2)).sum(1)

    def foot_heights(self) -> Tensor:
        """Return the height of the foot frames."""
        return self._engine.sensors(_names(self._engine.robot.feet, "position"))[..., 2]


def _names(bodies: tuple[str, ...], quantity: str) -> tuple[str, ...]:
    return tuple(f"{body}_{quantity}" for body in bodies)


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


def has_fallen(state: RobotState, limits: TerminationConfig) -> Tensor:
    """Return which robots (N,) have fallen: base in contact, tilted too far or too low."""
    fallen = torch.linalg.vector_norm(state.base_force, dim=-1) > limits.base_force
    if limits.roll is not None:
        fallen |= state.euler[:, 0].abs() > limits.roll
    if limits.pitch is not None:
        fallen |= state.euler[:, 1].abs() > limits.pitch
    if limits.height is not None:
        fallen |= state.base_position[:, 2] < limits.height
    return fallen


def rotation_tensor(quaternion: Tensor) -> Tensor:
    """Return rotation matrices (N, 3, 3) of quaternions wxyz (N, 4)."""
    w, x, y, z = quaternion.unbind(-1)
    entries = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return torch.stack(entries, dim=-1).view(-1, 3, 3)


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    """Return rotation matrices (N, 3, 3) of quaternions wxyz (N, 4)."""
    w, x, y, z = quaternion.T
    twice_x, twice_y, twice_z = (2 * quaternion[:, 1:]).T
    xx, yy, zz = twice_x * x, twice_y * y, twice_z * z
    xy, xz, yz = twice_x * y, twice_x * z, twice_y * z
    wx, wy, wz = w * twice_x, w * twice_y, w * twice_z
    entries = (
        1 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1 - (xx + yy),
    )  # fmt: skip
    matrices = np.empty((len(quaternion), 9))
    for column, entry in enumerate(entries):
        matrices[:, column] = entry
    return matrices.reshape(-1, 3, 3)


def euler_angles(rotation: np.ndarray) -> np.ndarray:
    """Return roll, pitch, yaw (ZYX) of rotation matrices."""
    roll = np.arctan2(rotation[:, 2, 1], rotation[:, 2, 2])
    pitch = np.arcsin((-rotation[:, 2, 0]).clip(-1.0, 1.0))
    yaw = np.arctan2(rotation[:, 1, 0], rotation[:, 0, 0])
    angles = np.empty((len(rotation), 3))
    angles[:, 0], angles[:, 1], angles[:, 2] = roll, pitch, yaw
    return angles
