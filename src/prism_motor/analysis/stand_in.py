"""A linear map in place of all products: what does it take to replace them?"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from prism_motor.analysis.products import Parts, Products

_PENALTIES = tuple(10.0**power for power in range(-3, 5))
"""Ridge penalties that it may choose from."""

_FOLDS = 4
"""Parts that the robots are divided into."""


class LinearStandIn:
    """The best linear approximation of what all products add to the features.

    Ridge regression on the normalised observation. The penalty is the one that predicts robots
    best that were not fitted on, a choice in favour of the linear map.

    Args:
        products: The products.
        parts: States to fit on.
        robots: Which robot each state is of; at least two.

    Attributes:
        held_out: Features on the same states, each robot predicted by a fit without it.
    """

    @torch.no_grad()
    def __init__(self, products: Products, parts: Parts, robots: np.ndarray) -> None:
        self.products = products
        first = products.first_order(parts)
        inputs, added = parts.inputs.double(), (products.features(parts) - first).double()
        fold = torch.from_numpy(np.unique(robots, return_inverse=True)[1].reshape(-1) % _FOLDS)
        guesses = added.new_zeros(len(_PENALTIES), *added.shape)
        for number in fold.unique():
            rest = fold != number
            maps = _fit(inputs[rest], added[rest])
            for guess, (slope, offset) in zip(guesses, maps, strict=True):
                guess[~rest] = inputs[~rest] @ slope + offset
        best = int((guesses - added).square().sum((1, 2)).argmin())
        self.held_out = first + guesses[best].to(first.dtype)
        slope, offset = _fit(inputs, added)[best]
        self._slope, self._offset = slope.to(first.dtype), offset.to(first.dtype)

    def __call__(self, parts: Parts) -> Tensor:
        """Return the features with the linear map instead of the products."""
        return self.products.first_order(parts) + parts.inputs @ self._slope + self._offset


def _fit(inputs: Tensor, outputs: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return slope and offset of the ridge regression for every penalty."""
    middle, spread = inputs.mean(0), inputs.std(0).clamp_min(1e-6)
    offset = outputs.mean(0)
    x = (inputs - middle) / spread
    values, vectors = torch.linalg.eigh(x.T @ x)
    projected = vectors.T @ (x.T @ (outputs - offset))
    found = []
    for penalty in _PENALTIES:
        slope = vectors @ (projected / (values + penalty).unsqueeze(-1)) / spread.unsqueeze(-1)
        found.append((slope, offset - middle @ slope))
    return found
