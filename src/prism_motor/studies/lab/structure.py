"""How multiplicative a problem is, measured on its data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from prism_motor.studies.fitting import Standardised

_RIDGE = 1e-6
"""Regularisation relative to the number of rows; inputs are standardised."""
_MOST_MONOMIALS = 2000
"""Least squares with more features take too long and too many rows."""
_NOTHING = 1e-6
"""A linear model that leaves less than this share leaves nothing for products to explain."""


@dataclass(frozen=True)
class Structure:
    """What polynomials explain of a problem."""

    linear: float
    """Share of the test variance that a linear model leaves, the mean over the outputs."""
    products: float
    """The same with products of inputs, up to ``degree`` of them."""
    degree: int
    """3, or 2 where there would be too many products of three."""

    @property
    def multiplicativity(self) -> float:
        """Share of what the linear model leaves that products explain, from 0 to 1."""
        if self.linear < _NOTHING:
            return 0.0
        return min(1.0, max(0.0, 1 - self.products / self.linear))


def measure_structure(data: Standardised) -> Structure:
    """Fit polynomials of the inputs by least squares and return what they leave."""
    inputs = data.train[0].shape[1]
    degree = 3 if math.comb(inputs + 3, 3) <= _MOST_MONOMIALS else 2
    return Structure(_left(data, 1), _left(data, degree), degree)


def _left(data: Standardised, degree: int) -> float:
    (x, y), (x_test, y_test) = data.train, data.test
    design, held_out = (_monomials(part.double(), degree) for part in (x, x_test))
    gram = design.T @ design
    gram.diagonal().add_(_RIDGE * len(design))
    weights = torch.linalg.solve(gram, design.T @ y.double())
    error = (held_out @ weights - y_test).square().mean(0)
    return float((error / y_test.double().var(0, correction=0)).mean())


def _monomials(x: Tensor, degree: int) -> Tensor:
    """Return every product of up to ``degree`` inputs, the empty one included."""
    padded = torch.cat([torch.ones_like(x[:, :1]), x], 1)
    chosen = torch.combinations(torch.arange(padded.shape[1]), degree, with_replacement=True)
    return padded[:, chosen.reshape(-1)].view(len(x), -1, degree).prod(-1)
