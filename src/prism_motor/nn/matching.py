"""Capacity controls: the plain MLP that costs the same as a given network."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, product

import torch
from torch import nn

from prism_motor._checks import InputError, check_choice
from prism_motor.nn.actors import Actor, ActorConfig

_TOLERANCE = 1e-3


def count_parameters(module: nn.Module) -> int:
    """Count trainable parameters (shared ones once)."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def count_flops(module: nn.Module, in_features: int) -> int:
    """Count the floating-point operations of the matrix products of one forward pass.

    A multiply-add counts two. Element-wise work is left out on both sides of a comparison: it is
    under 0.1 % of a PRISM actor.
    """
    # Here, because it imports triton where that is installed.
    from torch.utils.flop_counter import FlopCounterMode

    parameter = next(module.parameters())
    x = torch.zeros(1, in_features, device=parameter.device, dtype=parameter.dtype)
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            module(x)
    finally:
        module.train(was_training)
    return counter.get_total_flops()


def matched_mlp(
    reference: nn.Module,
    *,
    by: str = "parameters",
    in_features: int | None = None,
    out_features: int | None = None,
    hidden: tuple[int, ...] | None = None,
    activation: str | None = None,
) -> Actor:
    """Return a plain MLP actor of the same cost as ``reference``, within 0.1 %.

    The widths keep the proportions of ``hidden``. Multiples of eight are preferred (they are what
    people write and what kernels like); finer steps are used when needed to get close enough.

    Args:
        reference: The network to match. For an :class:`Actor` everything else has a default.
        by: ``"parameters"`` or ``"flops"`` (matrix products of one forward pass).
        in_features: Input size; default: the reference's.
        out_features: Output size; default: the reference's.
        hidden: Proportions of the hidden widths; default: the reference actor's.
        activation: Activation; default: the reference actor's, else ``"elu"``.
    """
    # An Actor provides the defaults.
    check_choice("cost", by, ("parameters", "flops"))
    if isinstance(reference, Actor):
        hidden = reference.config.hidden if hidden is None else hidden
        activation = reference.config.activation if activation is None else activation
    in_features = _size(reference, "in_features", in_features)
    out_features = _size(reference, "out_features", out_features)
    if not hidden:
        raise InputError(
            "matched_mlp: give hidden=(...), the proportions of the hidden widths; they can only "
            "be taken from an Actor with hidden layers."
        )
    # Costs in closed form: the search tries thousands of shapes.
    if by == "parameters":
        target, bias_cost, product_cost = count_parameters(reference), 1, 1
    else:
        target, bias_cost, product_cost = count_flops(reference, in_features), 0, 2

    def cost(widths: tuple[int, ...]) -> int:
        sizes = (in_features, *widths, out_features)
        return sum(product_cost * a * b + bias_cost * b for a, b in pairwise(sizes))

    widths = _nearest_widths(hidden, cost, target)
    miss = abs(cost(widths) - target) / target
    if miss > _TOLERANCE:
        raise InputError(
            f"matched_mlp: no MLP {in_features}-...-{out_features} shaped like {hidden} comes "
            f"within 0.1 % of {target:,} {by}; the nearest, {widths}, has {cost(widths):,} "
            f"({miss:.2%} off). Give other proportions with hidden=(...)."
        )
    config = ActorConfig(hidden=widths, activation=activation or "elu")
    return Actor(config, in_features, out_features)


def _size(reference: nn.Module, name: str, given: int | None) -> int:
    value = getattr(reference, name, None) if given is None else given
    if not isinstance(value, int):
        raise InputError(f"matched_mlp: {type(reference).__name__} has no {name}; give {name}=...")
    return value


def _nearest_widths(
    shape: tuple[int, ...], cost: Callable[[tuple[int, ...]], int], target: int
) -> tuple[int, ...]:
    """Search near the scaled shape, in steps of 8, 4, 2, 1, until within the tolerance."""

    def scaled(scale: float) -> tuple[int, ...]:
        return tuple(max(1, round(width * scale)) for width in shape)

    low, high = 0.0, 1.0
    while cost(scaled(high)) < target:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(scaled(middle)) < target else (low, middle)
    centre = [width * high for width in shape]

    # Few enough widths near the proportions to try every combination.
    choices = max(2, int(20_000 ** (1 / len(shape))))
    best = scaled(high)
    for step in (8, 4, 2, 1):
        grids = [_multiples_near(width, step, choices) for width in centre]
        best = min(product(*grids), default=best, key=lambda widths: abs(cost(widths) - target))
        if abs(cost(best) - target) <= _TOLERANCE * target:
            break
    return best


def _multiples_near(width: float, step: int, most: int) -> list[int]:
    """Multiples of ``step`` near ``width``, nearest first; step one looks further than the rest."""
    reach = 0.15 * width if step > 1 else max(4.0, 0.3 * width)
    first, last = max(1, math.ceil((width - reach) / step)), math.floor((width + reach) / step)
    multiples = [step * i for i in range(first, last + 1)]
    return sorted(multiples, key=lambda value: abs(value - width))[:most]
