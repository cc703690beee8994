"""From one latent to another: great circles on their sphere, and timed switching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.tracking.learning.latents import project

_NEAR = 1e-4
"""Angle, rad, below which a great circle is a straight line."""


def slerp(first: Tensor, second: Tensor, share: float | Tensor) -> Tensor:
    """Return the latents (..., d) at a share of the great circle from one latent to another.

    Opposite latents have no shortest way between them; they are left for the second at a half.

    Args:
        first: Where share 0 is (..., d).
        second: Where share 1 is (..., d).
        share: From 0 to 1; one for all, or (...).
    """
    share = torch.as_tensor(share, dtype=first.dtype, device=first.device)[..., None].clamp(0, 1)
    one, two = project(first), project(second)
    size = one.shape[-1]
    cosine = ((one * two).sum(dim=-1, keepdim=True) / size).clamp(-1, 1)
    angle = torch.arccos(cosine)
    sine = torch.sin(angle)
    curved = (torch.sin((1 - share) * angle) * one + torch.sin(share * angle) * two) / sine.clamp(
        min=1e-12
    )
    straight = torch.where(
        cosine > 0, project((1 - share) * one + share * two), torch.where(share < 0.5, one, two)
    )
    return project(torch.where(sine > _NEAR, curved, straight))


def blend(latents: Tensor, weights: Sequence[float]) -> Tensor:
    """Return one latent (d,) between several (n, d), closest to those of the largest weights.

    Two are blended along their great circle; of more, the weighted mean is projected.
    """
    shares = torch.tensor(weights, dtype=latents.dtype, device=latents.device)
    if len(shares) != len(latents) or not (shares >= 0).all() or not shares.sum() > 0:
        raise InputError(
            f"{len(latents)} latents need as many weights of at least 0, not all 0; got {weights}."
        )
    shares = shares / shares.sum()
    if len(latents) == 2:
        return slerp(latents[0], latents[1], float(shares[1]))
    mean = shares @ latents
    if not mean.norm() > 1e-6 * latents.shape[-1] ** 0.5:
        raise InputError("These latents cancel each other; give one of them more weight.")
    return project(mean)


@dataclass(frozen=True)
class Fade:
    """A way from one latent to another that takes a while."""

    start: float
    """When it begins, s."""
    seconds: float
    """How long it takes, s; 0: at once."""

    def share(self, time: float) -> float:
        """Return how much of the way is done, eased in and out."""
        done = 1.0 if self.seconds <= 0 else min(1.0, max(0.0, (time - self.start) / self.seconds))
        return done * done * (3 - 2 * done)

    def __call__(self, before: Tensor, after: Tensor, time: float) -> Tensor:
        """Return the latents at a time."""
        share = self.share(time)
        return after if share >= 1 else slerp(before, after, share)


class Schedule:
    """Latents that follow each other in time.

    Args:
        latents: The latents (n, d).
        seconds: How long each is held, with the way to it; the last one stays.
        fade: How long the way from one to the next takes, s.
    """

    def __init__(self, latents: Tensor, seconds: Sequence[float], fade: float = 0.5) -> None:
        if len(seconds) != len(latents) or not all(one > 0 for one in seconds) or fade < 0:
            raise InputError(
                f"{len(latents)} latents need as many times above 0 and a fade of at least 0, got "
                f"{list(seconds)} and {fade}."
            )
        self.latents = latents
        self.starts = [sum(seconds[:index]) for index in range(len(seconds))]
        self._fade = fade

    def __call__(self, time: float) -> Tensor:
        """Return the latent (d,) at a time, s."""
        now = max((i for i, start in enumerate(self.starts) if start <= time), default=0)
        if now == 0:
            return self.latents[0]
        fade = Fade(self.starts[now], self._fade)
        return fade(self.latents[now - 1], self.latents[now], time)
