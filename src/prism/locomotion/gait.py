"""The gait clock: phase, stance mask and reference motion."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from prism.locomotion.config import GaitConfig


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
        self.offsets = torch.tensor(config.offsets, device=default_pose.device)
        gains = default_pose.new_zeros(len(config.offsets), len(default_pose))
        for joint, foot, factor in config.swing:
            gains[foot, joint] += factor * config.amplitude
        self.gains = gains

    def phase(self, steps: Tensor) -> Tensor:
        """Return the share of the present cycle that has passed, (N,)."""
        # In float32 the product would be off by 1e-5 cycles after half a minute of walking.
        cycles = steps.double() * (self.control_dt / self.config.cycle)
        return torch.remainder(cycles, 1.0).float()

    def clock(self, steps: Tensor) -> Tensor:
        """Return (sin, cos) of the phase, (N, 2)."""
        angle = 2 * math.pi * self.phase(steps)
        return torch.stack([angle.sin(), angle.cos()], dim=-1)

    def _waves(self, steps: Tensor) -> Tensor:
        return torch.sin(2 * math.pi * (self.phase(steps).unsqueeze(-1) + self.offsets))

    def stance(self, steps: Tensor) -> Tensor:
        """Return which feet should be on the ground, (N, feet) of bool."""
        wave = self._waves(steps)
        return (wave >= 0) | (wave.abs() < self.config.double_support)

    def reference(self, steps: Tensor) -> Tensor:
        """Return the reference joint angles, (N, J)."""
        wave = self._waves(steps)
        swing = torch.where(wave.abs() < self.config.double_support, 0.0, (-wave).clamp(min=0.0))
        return self.start + swing @ self.gains
