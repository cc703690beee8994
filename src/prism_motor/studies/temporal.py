"""Fronts that read a history with weights shared over time, with products and without."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from prism_motor.nn import TemporalPolynomialLayer

History = tuple[tuple[int, ...], ...]
"""Which inputs are frames of a history: their columns, one row per frame, the oldest first."""


class TemporalFront(nn.Module):
    """A temporal layer in front of a network, for frames that lie anywhere in the input.

    Args:
        layer: The layer; it sees the history, then everything else.
        columns: Where in the input its own inputs are.
    """

    def __init__(self, layer: TemporalPolynomialLayer, columns: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("columns", torch.tensor(columns), persistent=False)
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to the features of the layer."""
        return self.layer(x[..., self.get_buffer("columns")])


class TemporalConvolution(TemporalPolynomialLayer):
    """The control: the same layout and weights shared alike, SiLU where the other multiplies."""

    def estimate(self, x: Tensor) -> Tensor:
        """Return what the history alone says, without products."""
        return (nn.functional.silu(self.products(self._windows(x))) * self.average).sum(-2)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        newest = x[..., (self.frames - 1) * self.frame_features :]
        return nn.functional.silu(self.estimate(x) + self.gate * self.state(newest))


def make_temporal(
    history: History, inputs: int, features: int, *, window: int, degree: int, scaled: bool
) -> TemporalFront:
    """Build a front with products of frames, or with degree 1 the control without any.

    Args:
        history: The columns of each frame, at least ``window`` of them.
        inputs: Size of the input.
        features: Number of features.
        window: How many neighbouring frames are multiplied.
        degree: Highest degree of their products.
        scaled: Whether later factors are divided by their root mean square.
    """
    past = [column for frame in history for column in frame]
    others = [column for column in range(inputs) if column not in past]
    kind = TemporalConvolution if degree == 1 else TemporalPolynomialLayer
    layer = kind(
        len(history),
        len(history[0]),
        features,
        degree,
        window=window,
        extra_features=len(others),
        scaled=scaled,
    )
    return TemporalFront(layer, past + others)
