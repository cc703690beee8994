"""What actor and critic see: frames, noise and histories."""

from __future__ import annotations

import torch
from torch import Tensor

from prism_motor.locomotion.state import RobotState
from prism_motor.locomotion.task import ObservationConfig
from prism_motor.nn import frame_names


def shared_entries(
    config: ObservationConfig, clock: Tensor, command: Tensor, state: RobotState,
    default_pose: Tensor, action: Tensor,
) -> Tensor:  # fmt: skip
    """Return what both frames begin with, (N, 5 + 3 J): clock, command, joints and action."""
    return torch.cat(
        [
            clock,
            command[:, :2] * config.command_scale,
            command[:, 2:],
            state.q - default_pose,
            state.dq * config.joint_velocity_scale,
            action,
        ],
        dim=-1,
    )


def actor_frame(shared: Tensor, state: RobotState) -> Tensor:
    """Return the noise-free actor frame, (N, 11 + 3 J): 47 entries for 12 joints."""
    return torch.cat([shared, state.angular_velocity, state.euler], dim=-1)


def critic_frame(
    config: ObservationConfig, shared: Tensor, state: RobotState, reference: Tensor, push: Tensor,
    dynamics: Tensor, stance: Tensor, contact: Tensor,
) -> Tensor:  # fmt: skip
    """Return the critic frame, (N, 21 + 4 J + 2 F): 73 entries for 12 joints and 2 feet."""
    return torch.cat(
        [
            shared,
            state.q - reference,
            state.velocity * config.command_scale,
            state.angular_velocity,
            state.euler,
            push,
            dynamics,
            stance,
            contact,
        ],
        dim=-1,
    )


def dynamics_entries(config: ObservationConfig, friction: Tensor, base_mass: Tensor) -> Tensor:
    """Return what the critic sees of the dynamics, (N, 2)."""
    return torch.stack([friction, base_mass / config.mass_scale], dim=-1)


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
    """The last frames of every environment, oldest first, zero before the episode began.

    Attributes:
        values: (N, frames, size), clipped. Never written to: what was handed out stays as it is.
    """

    def __init__(self, num_envs: int, frames: int, size: int, clip: float) -> None:
        self.values = torch.zeros(num_envs, frames, size)
        self.clip = clip

    def reset(self, envs: Tensor) -> None:
        """Empty the history; assigned, not multiplied, so that a NaN does not survive."""
        self.values = self.values.index_fill(0, envs, 0.0)

    def push(self, frame: Tensor) -> None:
        """Append a frame and drop the oldest."""
        clipped = frame.clamp(-self.clip, self.clip).unsqueeze(1)
        self.values = torch.cat([self.values[:, 1:], clipped], dim=1)

    def flat(self) -> Tensor:
        """Return (N, frames * size)."""
        return self.values.flatten(1)
