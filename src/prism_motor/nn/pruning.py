"""Products that a task does not need: closed while training, cut out before deployment.

The degree of every feature is then learned: a gate that closes ends its feature's products::

    optimizer.step()
    shrink_gates(policy, 0.1 * learning_rate)  # after every step
    ...
    small = prune(policy)  # fewer parameters, the same function
"""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError
from prism_motor.nn.polynomial import PolynomialLayer


@torch.no_grad()
def shrink_gates(model: nn.Module, amount: float) -> None:
    """Move all gates towards zero by ``amount``, and no further: the step of an absolute cost.

    A share of the learning rate is a good amount: a gate stays open where the loss pulls at it by
    more than that share of an Adam step, and reaches exactly zero elsewhere.
    """
    if amount < 0:
        raise InputError(f"shrink_gates: amount must be at least 0, got {amount}.")
    for layer in model.modules():
        if isinstance(layer, PolynomialLayer) and layer.gate is not None:
            layer.gate.copy_(shrunk(layer.gate, amount))


def shrunk(values: Tensor, amount: Tensor | float) -> Tensor:
    """Return values moved towards zero by an amount, and no further."""
    return values.sign() * (values.abs() - amount).clamp(min=0)


class PrunedPolynomial(nn.Module):
    """A :class:`PolynomialLayer` without the factors behind closed gates.

    Features are kept in order of how many factors they have, so that each later factor multiplies
    the first few of them; the output has them in their old order.

    Args:
        layer: The trained layer, its warm-up finished.
        tolerance: Gates up to this size count as closed.

    Shape: (..., in_features) -> (..., out_features), as the layer it was made from.
    """

    def __init__(self, layer: PolynomialLayer, tolerance: float = 0.0) -> None:
        super().__init__()
        if layer.bound is not None:
            raise InputError(
                f"prune: a layer with bound={layer.bound} squashes its products and is not pruned. "
                "Train it with bound=None."
            )
        gate = layer.effective_gate()
        if gate is None:
            gate = layer.weight.new_zeros(0, layer.out_features)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        # An open gate behind a closed one multiplies all the same: sets of features, not lengths.
        used = [(row.abs() > tolerance).nonzero().flatten() for row in gate.detach()]
        self.counts = tuple(len(features) for features in used if len(features))
        constant, linear = (value.detach() for value in layer.affine_factors())
        weights, biases = [linear[0]], [constant[0]]
        for k, features in enumerate(used, start=1):
            weights.append(linear[k, features])
            biases.append(constant[k, features])
        self.weight = nn.Parameter(torch.cat(weights))
        self.bias = nn.Parameter(torch.cat(biases))
        for number, features in enumerate(one for one in used if len(one)):
            self.register_buffer(f"features{number}", features)

    def forward(self, x: Tensor) -> Tensor:
        """Multiply the features by the factors that they kept."""
        sizes = [self.out_features, *self.counts]
        psi, *later = nn.functional.linear(x, self.weight, self.bias).split(sizes, dim=-1)
        for number, factor in enumerate(later):
            features = self.get_buffer(f"features{number}")
            psi = psi.index_copy(-1, features, psi.index_select(-1, features) * factor)
        return psi

    def extra_repr(self) -> str:  # noqa: D102
        return f"{self.in_features}, {self.out_features}, factors on {list(self.counts)} features"


_Model = TypeVar("_Model", bound=nn.Module)


def prune(model: _Model, tolerance: float = 0.0) -> _Model:
    """Return a copy whose polynomial layers have lost the factors behind closed gates.

    Args:
        model: The trained model; it is not changed.
        tolerance: Gates up to this size count as closed. With 0 the function stays the same.
    """
    if tolerance < 0:
        raise InputError(f"prune: tolerance must be at least 0, got {tolerance}.")
    pruned = copy.deepcopy(model)
    if isinstance(pruned, PolynomialLayer):
        return PrunedPolynomial(pruned, tolerance)  # type: ignore[return-value]
    for parent in list(pruned.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, PolynomialLayer):
                setattr(parent, name, PrunedPolynomial(child, tolerance))
    return pruned
