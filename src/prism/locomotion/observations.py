"""What actor and critic see: frames, noise and histories."""

from __future__ import annotations

import torch
from torch import Tensor

from prism.locomotion.config import ObservationConfig
from prism.locomotion.state import RobotState
from prism.nn import frame_names


def actor_frame(
    config: ObservationConfig, clock: Tensor, command: Tensor, state: RobotState,
    default_pose: Tensor, action: Tensor,
) -> Tensor:  # fmt: skip
    """Return the noise-free actor frame, (N, 11 + 3 J): 47 entries for 12 joints."""
    return torch.cat(
        [*_common(config, clock, command, state, default_pose, action),
         state.angular_velocity, state.euler],
        dim=-1,
    )  # fmt: skip


def _common(
    config: ObservationConfig, clock: Tensor, command: Tensor, state: RobotState,
    default_pose: Tensor, action: Tensor,
) -> list[Tensor]:  # fmt: skip
    scale = config.command_scale
    return [
        clock,
        command[:, :2] * scale,
        command[:, 2:3],
        state.q - default_pose,
        state.dq * config.joint_velocity_scale,
        action,
    ]


def critic_frame(
    config: ObservationConfig, clock: Tensor, command: Tensor, state: RobotState,
    default_pose: Tensor, action: Tensor, reference: Tensor, push: Tensor, friction: Tensor,
    base_mass: Tensor, stance: Tensor, contact: Tensor,
) -> Tensor:  # fmt: skip
    """Return the critic frame, (N, 21 + 4 J + 2 F): 73 entries for 12 joints and 2 feet."""
    return torch.cat(
        [
            *_common(config, clock, command, state, default_pose, action),
            state.q - reference,
            state.velocity * config.command_scale,
            state.angular_velocity,
            state.euler,
            push,
            friction.unsqueeze(-1),
            base_mass.unsqueeze(-1) / config.mass_scale,
            stance.float(),
            contact.float(),
        ],
        dim=-1,
    )


def noise_scale(config: ObservationConfig, joints: int) -> Tensor:
    """Return the standard deviation of the noise on each entry of the actor frame."""
    parts = [
        torch.zeros(5),
        torch.full((joints,), config.joint_noise),
        torch.full((joints,), config.joint_velocity_noise * config.joint_velocity_scale),
        torch.zeros(joints),
        torch.full((3,), config.angular_velocity_noise),
        torch.full((3,), config.orientation_noise),
    ]
    return config.noise * torch.cat(parts)


def actor_names(joints: list[str], frames: int) -> list[str]:
    """Name every actor input, oldest frame first, e.g. ``dq_left_knee[t-3]``."""
    names = ["clock_sin", "clock_cos", "command_forward", "command_sideways", "command_yaw"]
    for quantity in ("q", "dq", "action"):
        names += [f"{quantity}_{joint}" for joint in joints]
    names += ["gyro_x", "gyro_y", "gyro_z", "roll", "pitch", "yaw"]
    return frame_names(names, frames)


class History:
    """The last frames of every environment, oldest first, zero before the episode began."""

    def __init__(self, num_envs: int, frames: int, size: int, clip: float) -> None:
        self.values = torch.zeros(num_envs, frames, size)
        self.clip = clip

    def reset(self, envs: Tensor) -> None:
        """Empty the history; assigned, not multiplied, so that a NaN does not survive."""
        self.values[envs] = 0.0

    def push(self, frame: Tensor) -> None:
        """Append a frame and drop the oldest."""
        self.values = torch.cat([self.values[:, 1:], frame.unsqueeze(1)], dim=1)

    def flat(self) -> Tensor:
        """Return (N, frames * size), clipped."""
        return self.values.flatten(1).clamp(-self.clip, self.clip)
