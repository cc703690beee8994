"""How the feet move: swings, touchdowns and double support of many robots at once."""

from __future__ import annotations

import torch
from torch import Tensor


class GaitMeter:
    """Measures the present episode of every environment.

    A swing begins when a foot that has touched the ground leaves it and ends with its next contact;
    the drop at the start of an episode and a swing that the episode cuts off do not count.

    Attributes:
        steps: Control steps so far, (N,).
        supported: Of these, steps with all feet on the ground, (N,).
        swings: Finished swings of each foot, (N, F); each ended with a touchdown.
        apexes: Sum over these swings of the greatest height above the last contact, m, (N, F).
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
        """Take in one control step.

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
        """Begin new episodes in some environments."""
        for values in vars(self).values():
            values[envs] = 0

    def swing_apex(self) -> Tensor:
        """Return the mean greatest height of a swing, m, (N,); NaN without a swing."""
        return self.apexes.sum(-1) / self.swings.sum(-1)

    def double_support(self) -> Tensor:
        """Return the fraction of time with all feet on the ground, (N,)."""
        return self.supported.double() / self.steps

    def touchdowns(self, control_dt: float) -> Tensor:
        """Return the touchdowns per second and foot, (N,)."""
        return self.swings.double().mean(-1) / (self.steps * control_dt)
