"""A guard that names the layer and the factor where a value stops being finite."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError, PrismError
from prism_motor.nn.factors import FactorLayer
from prism_motor.nn.polynomial import PolynomialLayer


class NonFiniteError(PrismError, FloatingPointError):
    """A NaN or an infinity appeared in a layer."""


class FiniteGuard:
    """Watch every interaction layer of a model; raise :class:`NonFiniteError` at the first NaN.

    Use it as a context manager, or keep it and call :meth:`remove`::

        with FiniteGuard(policy):
            loss = policy(batch).square().mean()

    It costs one pass over each layer's output; the search for the culprit runs only on failure.
    """

    def __init__(self, model: nn.Module) -> None:
        self._handles = [
            module.register_forward_hook(self._hook_for(name or type(module).__name__))
            for name, module in model.named_modules()
            if isinstance(module, FactorLayer)
        ]
        if not self._handles:
            raise InputError(
                f"FiniteGuard: {type(model).__name__} contains no interaction layer to watch."
            )

    def remove(self) -> None:
        """Stop watching."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> FiniteGuard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()

    @staticmethod
    def _hook_for(name: str) -> Any:
        def check(layer: FactorLayer, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if not torch.isfinite(output).all():
                raise NonFiniteError(f"layer {name!r}: {_find_culprit(layer, inputs[0])}")

        return check


@torch.no_grad()
def _find_culprit(layer: FactorLayer, x: Tensor) -> str:
    """Describe what became non-finite first: input, parameter, affine factor or product."""
    if problem := _count_bad(x):
        return f"its input is not finite ({problem}). Look upstream of this layer."
    gate = layer.effective_gate() if isinstance(layer, PolynomialLayer) else None
    for k in range(layer.degree):
        values = {"weight": layer.weight[k], "bias": None if layer.bias is None else layer.bias[k]}
        if gate is not None and k > 0:
            values["gate"] = gate[k - 1]
        for part, value in values.items():
            if value is not None and (problem := _count_bad(value)):
                return (
                    f"the {part} of factor {k + 1} of {layer.degree} is not finite ({problem}). "
                    "An earlier update broke it: lower the learning rate or clip gradients."
                )
    factors = layer.factors(x)
    size = f"largest input {x.abs().max().item():.3g}, {x.dtype}"
    for k, factor in enumerate(factors):
        if problem := _count_bad(factor):
            return (
                f"factor {k + 1} of {layer.degree} overflows ({problem}; {size}). "
                "Normalise or clip the input."
            )
    for k in range(2, layer.degree + 1):
        if isinstance(layer, PolynomialLayer) and gate is not None:
            multiplier = 1 + layer._bounded(gate[k - 2] * factors[k - 1])
            factors[0] = factors[0] * multiplier
            if problem := _count_bad(factors[0]):
                return (
                    f"the product overflows at factor {k} of {layer.degree} ({problem}; {size}, "
                    f"largest multiplier {multiplier.abs().max().item():.3g}). "
                    "Use bound=1.0, a lower degree or a wider dtype."
                )
    return f"the product of its {layer.degree} factors overflows ({size}). Lower the degree."


def _count_bad(values: Tensor) -> str:
    bad = ~torch.isfinite(values)
    count = int(bad.sum())
    if not count:
        return ""
    nans = int(torch.isnan(values).sum())
    return f"{nans} NaN and {count - nans} infinite of {values.numel()} values"
