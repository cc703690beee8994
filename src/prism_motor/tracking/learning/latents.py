"""Latents: the sphere they live on, where they come from, and which one a rollout acts under."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from prism_motor.tracking.config import LatentConfig


def project(vectors: Tensor) -> Tensor:
    """Scale vectors (..., d) to the length sqrt(d)."""
    size = vectors.shape[-1]
    return torch.nn.functional.normalize(vectors, dim=-1) * size**0.5


def random_latents(
    count: int, size: int, generator: torch.Generator, device: torch.device | str = "cpu"
) -> Tensor:
    """Draw latents uniformly from the sphere."""
    return project(torch.randn(count, size, generator=generator, device=device))


def window_latents(encoded: Tensor, window: int) -> Tensor:
    """Return one latent per frame from encoded windows laid end to end (N, d), N = n * window."""
    means = encoded.view(-1, window, encoded.shape[-1]).mean(dim=1)
    return project(means).repeat_interleave(window, dim=0)


def following_latents(encoded: Tensor, window: int) -> Tensor:
    """Return the latent of every step of a stretch: the mean of the coming window of codes.

    Args:
        encoded: Backward map of the successors of the stretch's frames (..., T, d).
        window: Frames that are averaged; fewer at the end.
    """
    total = encoded.shape[-2]
    sums = torch.cumsum(encoded.double(), dim=-2)
    before = torch.cat([torch.zeros_like(sums[..., :1, :]), sums[..., :-1, :]], dim=-2)
    last = torch.arange(window - 1, total + window - 1, device=encoded.device).clamp(max=total - 1)
    return project((sums[..., last, :] - before).to(encoded.dtype))


def mix_latents(
    config: LatentConfig, goals: Tensor, experts: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw for every row a goal, an expert's or a random latent.

    Returns:
        The latents (N, d), and which of them are experts' (N,).

    Args:
        config: The shares.
        goals: Backward map of the batch's successors (N, d).
        experts: Latents of the expert frames (N, d).
        generator: Source of all draws.
    """
    count, size = goals.shape
    device = goals.device
    draw = torch.rand(count, 1, generator=generator, device=device)
    goals = goals[torch.randperm(count, generator=generator, device=device)]
    experts = experts[torch.randperm(count, generator=generator, device=device)]
    others = random_latents(count, size, generator, device)
    below = draw < config.goal + config.expert
    mixed = torch.where(below, experts, others)
    expert = (below & (draw >= config.goal)).squeeze(1)
    return torch.where(draw < config.goal, goals, mixed), expert


def relabel(
    config: LatentConfig, new: Tensor, stored: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw for every row the new latent or, less often, the one that was acted under.

    Returns:
        The latents (N, d), and which of them are new (N,).
    """
    draw = torch.rand(len(new), 1, generator=generator, device=new.device)
    return torch.where(draw < config.relabel, new, stored), (draw < config.relabel).squeeze(1)


class LatentRing:
    """The latest latents of updates, from which rollouts draw.

    Args:
        capacity: How many are kept.
        size: Entries of a latent.
        device: Where they are.
    """

    def __init__(self, capacity: int, size: int, device: torch.device | str = "cpu") -> None:
        self._values = torch.zeros(capacity, size, device=device)
        self._pushed = 0

    def __len__(self) -> int:
        return min(self._pushed, len(self._values))

    def push(self, latents: Tensor) -> None:
        """Add latents (N, d); the oldest give way."""
        latents = latents.detach()[-len(self._values) :]
        places = torch.arange(self._pushed, self._pushed + len(latents)) % len(self._values)
        self._values[places.to(self._values.device)] = latents.to(self._values)
        self._pushed += len(latents)

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw latents with replacement; random ones while there are none."""
        device = self._values.device
        if not len(self):
            return random_latents(count, self._values.shape[1], generator, device)
        chosen = torch.randint(len(self), (count,), generator=generator, device=device)
        return self._values[chosen]

    def state(self) -> tuple[dict[str, Tensor], int]:
        """Return the latents and how many were pushed."""
        return {"values": self._values.clone()}, self._pushed

    def restore(self, tensors: dict[str, Tensor], pushed: int) -> None:
        """Continue with saved latents."""
        self._values.copy_(tensors["values"])
        self._pushed = pushed


class RolloutLatents:
    """Which latent every environment acts under.

    Each gets another one from the ring when its episode is a multiple of ``switch_every`` steps
    old, so also at a reset. Some follow a stretch of a clip instead, one latent per step; after
    ``follow_steps`` steps of all environments the followers are drawn anew.

    Args:
        config: When latents change.
        envs: Environments.
        size: Entries of a latent.
        device: Where latents are.
    """

    def __init__(
        self, config: LatentConfig, envs: int, size: int, device: torch.device | str = "cpu"
    ) -> None:
        self._config = config
        self._values = torch.zeros(envs, size, device=device)
        self._followers = torch.zeros(0, dtype=torch.long, device=device)
        self._stretches = torch.zeros(0, config.follow_steps, size, device=device)
        self._step = 0

    def step(
        self,
        clocks: Tensor,
        ring: LatentRing,
        stretches: Callable[[int], Tensor | None],
        generator: torch.Generator,
    ) -> Tensor:
        """Return the latents (N, d) of the coming step.

        Args:
            clocks: Age of every environment's episode, in steps (N,).
            ring: Where new latents come from.
            stretches: Gives the latents (n, follow_steps, d) of n stretches of clips, or ``None``
                if no clip is long enough.
            generator: Source of all draws.
        """
        due = (clocks.to(self._values.device) % self._config.switch_every == 0).nonzero()[:, 0]
        if len(due):
            self._values[due] = ring.draw(len(due), generator)
        within = self._step % self._config.follow_steps
        if within == 0:
            self._choose_followers(stretches, generator)
        self._step += 1
        if not len(self._followers):
            return self._values.clone()
        latents = self._values.clone()
        latents[self._followers] = self._stretches[:, within]
        return latents

    def _choose_followers(
        self, stretches: Callable[[int], Tensor | None], generator: torch.Generator
    ) -> None:
        envs, device = len(self._values), self._values.device
        draws = int(self._config.follow * envs)
        drawn = torch.randint(envs, (draws,), generator=generator, device=device)
        self._followers = torch.unique(drawn)
        latents = stretches(len(self._followers)) if len(self._followers) else None
        if latents is None:
            self._followers = self._followers[:0]
            latents = self._stretches[:0]
        self._stretches = latents

    def state(self) -> tuple[dict[str, Tensor], int]:
        """Return all tensors and the number of steps so far."""
        tensors = {
            "values": self._values.clone(),
            "followers": self._followers.clone(),
            "stretches": self._stretches.clone(),
        }
        return tensors, self._step

    def restore(self, tensors: dict[str, Tensor], step: int) -> None:
        """Continue from a saved state."""
        device = self._values.device
        self._values = tensors["values"].to(device).clone()
        self._followers = tensors["followers"].to(device).clone()
        self._stretches = tensors["stretches"].to(device).clone()
        self._step = step
