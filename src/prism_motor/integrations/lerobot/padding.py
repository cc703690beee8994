"""Zero-padded states: the conditioner neither reads the padding nor multiplies with it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from prism_motor.nn import ExplicitLayer, FactorLayer, PolynomialConditioner


def ignore_padding(conditioner: nn.Module, size: int) -> None:
    """Set the weights of all inputs from ``size`` on to zero, in every factor.

    The padding is zero, so their gradients are zero as well and they stay there: products with
    padding contribute nothing to the output, to the readout of learned products or to the exact
    expansion. A robot with a longer state can still learn them later.
    """
    if not isinstance(conditioner, PolynomialConditioner):
        return
    layer = conditioner.interaction
    with torch.no_grad():
        if isinstance(layer, FactorLayer):
            layer.weight[..., size:] = 0
        elif isinstance(layer, ExplicitLayer):
            # Index 0 of a monomial is the constant, so input i has index i + 1.
            layer.linear.weight[:, (layer.indices > size).any(dim=-1)] = 0


class Narrow(nn.Module):
    """Cut the padding off, then apply ``conditioner``."""

    def __init__(self, conditioner: nn.Module, size: int) -> None:
        super().__init__()
        self.conditioner = conditioner
        self.size = size

    def forward(self, state: Tensor) -> Tensor:
        """Map (..., padded size) to (..., hidden)."""
        return self.conditioner(state[..., : self.size])

    def extra_repr(self) -> str:  # noqa: D102
        return f"size={self.size}"
