"""Running normalisation of observations: batch norm without scale and shift, one per stream."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from prism_motor.tracking.observations import STREAMS, Layout

_EPS = 1e-5
_LEAST_VARIANCE = 1e-3


class ObservationNormaliser(nn.Module):
    """Moves its statistics only when told to; always normalises with the running ones.

    The formulas are those of ``nn.BatchNorm1d(affine=False)``. Its entries are independent of each
    other, so the streams are kept side by side, each with its count of batches.

    Args:
        layout: The streams.
    """

    mean: Tensor
    variance: Tensor
    batches: Tensor

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._layout = layout
        self.register_buffer("mean", torch.zeros(layout.size))
        self.register_buffer("variance", torch.ones(layout.size))
        self.register_buffer("batches", torch.zeros(len(STREAMS), dtype=torch.long))

    @torch.no_grad()
    def observe(self, observations: Tensor, share: float = 0.01) -> None:
        """Move the statistics towards those of a batch (N, size) of the policy's observations.

        Args:
            observations: The batch.
            share: Its share in the new statistics.
        """
        # Twelve times as fast on a CPU as torch.var_mean over rows.
        mean = observations.mean(dim=0)
        variance = (observations - mean).square().sum(dim=0) / (len(observations) - 1)
        self.mean.lerp_(mean, share)
        self.variance.lerp_(variance, share)
        self.batches += 1

    @torch.no_grad()
    def start_from(self, observations: Tensor) -> None:
        """Set the statistics to those of a batch (N, size)."""
        self.mean.copy_(observations.mean(dim=0))
        # What hardly varies in it may vary more later, and must not become the loudest input.
        self.variance.copy_(observations.var(dim=0).clamp(min=_LEAST_VARIANCE))
        self.batches += 1

    def forward(self, observations: Tensor, streams: Sequence[str] = STREAMS) -> Tensor:
        """Normalise observations that consist of some streams, side by side; default: all."""
        mean, variance = self.mean, self.variance
        if tuple(streams) != STREAMS:
            columns = [self._layout.columns[name] for name in streams]
            mean = torch.cat([mean[one] for one in columns])
            variance = torch.cat([variance[one] for one in columns])
        return (observations - mean) * torch.rsqrt(variance + _EPS)
