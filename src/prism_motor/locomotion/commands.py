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

    Args:
        config: Ranges.
        num_envs: Number of environments.
        generator: Source of random numbers, on the device.
        device: Where commands are.

    Attributes:
        values: (N, 3): forward, sideways (m/s) and yaw rate (rad/s), as the policy sees them.
        heading: (N,) target heading, rad; unused where the yaw rate is drawn.
    """

    def __init__(
        self,
        config: CommandConfig,
        num_envs: int,
        generator: torch.Generator,
        device: str | torch.device = "cpu",
    ) -> None:
        self.config = config
        self.generator = generator
        self.device = torch.device(device)
        self.values = torch.zeros(num_envs, 3, device=device)
        self.heading = torch.zeros(num_envs, device=device)
        self.follows = config.yaw == "heading"
        turn = config.heading if self.follows else config.yaw_rate
        bounds = torch.tensor([config.forward, config.sideways, turn], device=device)
        self._low, self._span = bounds[:, :1], bounds[:, 1:] - bounds[:, :1]

    def resample(self, envs: Tensor) -> None:
        """Draw new commands for some environments."""
        planar, turn = self._draw(len(envs))
        self.values[envs, :2] = planar.T
        if self.follows:
            self.heading[envs] = turn
        else:
            self.values[envs, 2] = turn

    def resample_where(self, due: Tensor) -> None:
        """Draw new commands for the environments (N,) that are due."""
        if self.device.type == "cpu":
            envs = due.nonzero().squeeze(-1)
            if len(envs):
                self.resample(envs)
            return
        # Elsewhere, counting who is due would mean to wait for the device: all are drawn.
        planar, turn = self._draw(len(due))
        target = self.heading if self.follows else self.values[:, 2]
        target.copy_(torch.where(due, turn, target))
        self.values[:, :2] = torch.where(due.unsqueeze(-1), planar.T, self.values[:, :2])

    def _draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Draw planar commands (2, count), zero within the dead band, and turns (count,)."""
        unit = torch.rand(3, count, generator=self.generator, device=self.device)
        drawn = self._low + self._span * unit
        planar, turn = drawn[:2], drawn[2]
        return planar * (torch.linalg.vector_norm(planar, dim=0) > self.config.deadband), turn

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
        super().__init__(like.config, len(like.values), like.generator, like.device)
        self.values, self.heading = like.values, like.heading
        self.hold(held)

    def hold(self, held: Sequence[float] | None) -> None:
        """Hold a command in all environments from now on, or let the task draw its own again."""
        self.held = None if held is None else torch.tensor(list(held), device=self.device)
        if self.held is not None:
            self.values[:] = self.held

    def resample(self, envs: Tensor) -> None:
        """Draw new commands unless one is held."""
        if self.held is None:
            super().resample(envs)

    def resample_where(self, due: Tensor) -> None:
        """Draw new commands unless one is held."""
        if self.held is None:
            super().resample_where(due)

    def follow_heading(self, yaw: Tensor) -> None:
        """Turn the heading error into a yaw-rate command unless one is held."""
        if self.held is None:
            super().follow_heading(yaw)
        else:
            self.values[:] = self.held


def wrap(angle: Tensor) -> Tensor:
    """Map an angle to (-pi, pi]."""
    return math.pi - torch.remainder(math.pi - angle, 2 * math.pi)
