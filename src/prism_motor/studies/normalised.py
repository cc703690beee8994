"""A variant of the PRISM layer that starts with products at the scale of their factors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from prism_motor.nn import PolynomialLayer


class UnitPolynomial(PolynomialLayer):
    """Weights and output are scaled so that products of standardised inputs start at variance one.

    Factors start with variance one (``nn.Linear``'s have a third of it), and each step of the
    recursion, which would multiply the variance by ``1 + gate_init^2``, is divided by its root.
    """

    def reset_parameters(self) -> None:
        """Re-draw the weights at variance one."""
        super().reset_parameters()
        with torch.no_grad():
            self.weight.mul_(math.sqrt(3))

    def combine(self, factors: list[Tensor]) -> Tensor:
        """Apply the recursion and undo the growth that it has at the start."""
        growth = (1 + self.gate_init**2) ** ((self.degree - 1) / 2)
        return super().combine(factors) / growth

    def affine_factors(self) -> tuple[Tensor, Tensor]:
        """Return the factors with the scale in the first one."""
        constant, linear = super().affine_factors()
        growth = (1 + self.gate_init**2) ** ((self.degree - 1) / 2)
        constant[0] /= growth
        linear[0] /= growth
        return constant, linear
