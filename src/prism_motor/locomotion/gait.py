"""The gait: clock, stance and reference motion as planned, swings and contacts as measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
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
        # A quarter of a cycle ahead, the sine is the cosine that the clock also shows.
        self._offsets = torch.tensor((0.0, 0.25, *config.offsets), device=default_pose.device)
        gains = default_pose.new_zeros(len(config.offsets), len(default_pose))
        for joint, foot, factor in config.swing:
            gains[foot, joint] += factor * config.amplitude
        self.gains = gains
        strides = default_pose.new_zeros(len(config.offsets), 3, len(default_pose))
        for joint, foot, part, factor in config.stride:
            strides[foot, part, joint] += factor
        self.strides = strides

    def phase(self, steps: Tensor) -> Tensor:
        """Return the elapsed fraction of the current cycle, (N,)."""
        # In float32 the product would be off by 1e-5 cycles after half a minute of walking.
        cycles = steps.double() * (self.control_dt / self.config.cycle)
        return torch.remainder(cycles, 1.0).float()

    def at(self, steps: Tensor, command: Tensor | None = None) -> Beat:
        """Return the state of the gait of each robot.

        Args:
            steps: Control steps since the start (N,).
            command: Commanded velocities (N, 3), to which strides are proportional; default: zero.
        """
        phases = self.phase(steps).unsqueeze(-1) + self._offsets
        waves = torch.sin(2 * math.pi * phases)
        clock, feet = waves[:, :2], waves[:, 2:]
        stance = feet >= -self.config.double_support
        swing = (-feet).masked_fill(stance, 0.0)
        reference = torch.addmm(self.start, swing, self.gains)
        if self.config.stride and command is not None:
            reach = self.config.cycle / 4 * (4 * (phases[:, 2:] % 1.0 - 0.5).abs() - 1)
            steps_of_feet = reach.unsqueeze(2) * command.unsqueeze(1)  # (N, feet, 3)
            reference = reference + steps_of_feet.flatten(1) @ self.strides.flatten(0, 1)
        return Beat(clock, stance, reference)


class GaitMeter:
    """Measures how the feet move in the current episode of every environment.

    A swing begins when a foot that has touched the ground leaves it and ends with its next contact;
    the drop at the start of an episode and a swing that the episode cuts off do not count.

    Attributes:
        steps: Control steps so far, (N,).
        supported: Of these, steps with all feet on the ground, (N,).
        swings: Finished swings of each foot, (N, F); each ended with a touchdown.
        apexes: Sum over these swings of the peak height above the last contact, m, (N, F).
    """

    def __init__(self, num_envs: int, num_feet: int) -> None:
        self.steps = torch.zeros(num_envs, dtype=torch.long)
        self.supported = torch.zeros(num_envs, dtype=torch.long)
        self.swings = torch.zeros(num_envs, num_feet, dtype=torch.long)
        self.apexes = torch.zeros(num_envs, num_feet, dtype=torch.double)
        self._swinging = torch.zeros(num_envs, num_feet, dtype=torch.bool)
        self._grounded = torch.zeros(num_envs, num_feet, dtype=torch.bool)
        self._lift_off = torch.zeros(num_envs, num_feet)
        self._highest = torch.zeros(num_envs, num_feet)

    def update(self, contact: Tensor, height: Tensor) -> None:
        """Add one control step.

        Args:
            contact: Which feet touch the ground, (N, F).
            height: Height of the feet, m, (N, F).
        """
        self.steps += 1
        self.supported += contact.all(-1)
        ended = self._swinging & contact
        self.swings += ended
        self.apexes += torch.where(ended, self._highest, 0.0)

        begun = self._grounded & ~contact
        self._swinging = (self._swinging | begun) & ~contact
        self._highest = torch.where(begun, 0.0, self._highest)
        self._lift_off = torch.where(contact, height, self._lift_off)
        self._highest = torch.maximum(self._highest, height - self._lift_off)
        self._grounded = contact.clone()

    def reset(self, envs: Tensor) -> None:
        """Start new episodes in some environments."""
        for values in vars(self).values():
            values[envs] = 0

    def swing_apex(self) -> Tensor:
        """Return the mean peak height of swings, m, (N,); NaN without a swing."""
        return self.apexes.sum(-1) / self.swings.sum(-1)

    def double_support(self) -> Tensor:
        """Return the fraction of time with all feet on the ground, (N,)."""
        return self.supported.double() / self.steps

    def touchdowns(self, control_dt: float) -> Tensor:
        """Return the touchdowns per second and foot, (N,)."""
        return self.swings.double().mean(-1) / (self.steps * control_dt)
