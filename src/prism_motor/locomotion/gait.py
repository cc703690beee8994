"""The gait clock: phase, stance mask and reference motion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from prism_motor.locomotion.task import GaitConfig


@dataclass(frozen=True)
class Beat:
    """Where all robots are in their gait."""

    clock: Tensor
    """(sin, cos) of the phase, (N, 2)."""
    stance: Tensor
    """Which feet should be on the ground, (N, feet) of bool."""
    reference: Tensor
    """Reference joint angles, (N, J)."""


class Gait:
    """Gait clock of a legged robot with one phase offset per foot.

    Args:
        config: Clock and reference motion.
        default_pose: Default joint angles (J,).
        control_dt: Control step, s.
    """

    def __init__(self, config: GaitConfig, default_pose: Tensor, control_dt: float) -> None:
        self.config = config
        self.control_dt = control_dt
        self.start = default_pose if config.from_default_pose else torch.zeros_like(default_pose)
        # A quarter of a cycle ahead, the sine is the cosine that the clock shows beside it.
        self._offsets = torch.tensor((0.0, 0.25, *config.offsets), device=default_pose.device)
        gains = default_pose.new_zeros(len(config.offsets), len(default_pose))
        for joint, foot, factor in config.swing:
            gains[foot, joint] += factor * config.amplitude
        self.gains = gains

    def phase(self, steps: Tensor) -> Tensor:
        """Return the share of the present cycle that has passed, (N,)."""
        # In float32 the product would be off by 1e-5 cycles after half a minute of walking.
        cycles = steps.double() * (self.control_dt / self.config.cycle)
        return torch.remainder(cycles, 1.0).float()

    def at(self, steps: Tensor) -> Beat:
        """Return everything about the gait after so many control steps of each robot."""
        phases = self.phase(steps).unsqueeze(-1) + self._offsets
        waves = torch.sin(2 * math.pi * phases)
        clock, feet = waves[:, :2], waves[:, 2:]
        stance = feet >= -self.config.double_support
        swing = (-feet).masked_fill(stance, 0.0)
        return Beat(clock, stance, torch.addmm(self.start, swing, self.gains))

    def clock(self, steps: Tensor) -> Tensor:
        """Return (sin, cos) of the phase, (N, 2)."""
        return self.at(steps).clock

    def stance(self, steps: Tensor) -> Tensor:
        """Return which feet should be on the ground, (N, feet) of bool."""
        return self.at(steps).stance

    def reference(self, steps: Tensor) -> Tensor:
        """Return the reference joint angles, (N, J)."""
        return self.at(steps).reference
