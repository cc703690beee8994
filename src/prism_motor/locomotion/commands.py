"""Velocity commands: sampled planar velocity, and a yaw rate, sampled or from a heading."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from prism_motor.locomotion.task import CommandConfig


class Commands:
    """The commands of all environments.

    Attributes:
        values: (N, 3): forward, sideways (m/s) and yaw rate (rad/s), as the policy sees them.
        heading: (N,) target heading, rad; unused where the yaw rate is drawn.
    """

    def __init__(self, config: CommandConfig, num_envs: int, generator: torch.Generator) -> None:
        self.config = config
        self.generator = generator
        self.values = torch.zeros(num_envs, 3)
        self.heading = torch.zeros(num_envs)
        self.follows = config.yaw == "heading"
        turn = config.heading if self.follows else config.yaw_rate
        bounds = torch.tensor([config.forward, config.sideways, turn])
        self._low, self._span = bounds[:, :1], bounds[:, 1:] - bounds[:, :1]

    def resample(self, envs: Tensor) -> None:
        """Draw new commands for some environments."""
        drawn = self._low + self._span * torch.rand(3, len(envs), generator=self.generator)
        planar, turn = drawn[:2], drawn[2]
        planar = planar * (torch.linalg.vector_norm(planar, dim=0) > self.config.deadband)
        self.values[envs, :2] = planar.T
        if self.follows:
            self.heading[envs] = turn
        else:
            self.values[envs, 2] = turn

    def follow_heading(self, yaw: Tensor) -> None:
        """Turn the heading error into a yaw-rate command, unless that was drawn itself."""
        if not self.follows:
            return
        error = wrap(self.heading - yaw)
        limit = self.config.yaw_limit
        self.values[:, 2] = (self.config.heading_gain * error).clamp(-limit, limit)


class HeldCommands(Commands):
    """Commands given from outside: a held command applies; without one the task draws its own.

    Args:
        like: The commands to replace.
        held: Forward and sideways velocity (m/s) and yaw rate (rad/s), the latter used as given
            instead of following a heading; ``None`` for the task's own.
    """

    def __init__(self, like: Commands, held: Sequence[float] | None = None) -> None:
        super().__init__(like.config, len(like.values), like.generator)
        self.values, self.heading = like.values, like.heading
        self.hold(held)

    def hold(self, held: Sequence[float] | None) -> None:
        """Hold a command in all environments from now on, or let the task draw its own again."""
        self.held = None if held is None else torch.tensor(list(held))
        if self.held is not None:
            self.values[:] = self.held

    def resample(self, envs: Tensor) -> None:
        """Draw new commands unless one is held."""
        if self.held is None:
            super().resample(envs)

    def follow_heading(self, yaw: Tensor) -> None:
        """Turn the heading error into a yaw-rate command unless one is held."""
        if self.held is None:
            super().follow_heading(yaw)
        else:
            self.values[:] = self.held


def wrap(angle: Tensor) -> Tensor:
    """Map an angle to (-pi, pi]."""
    return math.pi - torch.remainder(math.pi - angle, 2 * math.pi)
