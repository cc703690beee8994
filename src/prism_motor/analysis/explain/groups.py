"""Which kinds of inputs a policy multiplies: strength and effect of products per input group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prism_motor.analysis.explain.names import GROUPS, InputName, mean_slope
from prism_motor.analysis.explain.products import Parts, Products
from prism_motor.analysis.study import Report, silent

PAIRS = tuple((a, b) for a in range(len(GROUPS)) for b in range(a + 1))
"""All pairs of groups, (row, column) of the lower triangle."""


@dataclass(frozen=True)
class GroupMatrix:
    """Products of input groups; the lower triangles of symmetric tables, (groups, groups)."""

    effect: Tensor
    """Mean distance that the joint target moves when the products of two groups are removed from
    all features, rad."""
    strength: Tensor
    """Size of those products by their weights, for independent inputs of typical size, rad."""
    concentration: Tensor
    """Share of the squared strength, relative to untrained weights; NaN for constant inputs."""
    beyond: float
    """The same distance for everything beyond pairs: products of three or more inputs, and what
    hidden layers in front of the products bend, rad."""


def group_masks(names: Sequence[InputName]) -> Tensor:
    """Return which inputs belong to which group, (groups, inputs) of zeros and ones."""
    return torch.tensor([[float(name.group == group) for name in names] for group in GROUPS])


@torch.no_grad()
def measure_groups(
    products: Products,
    observations: Tensor,
    names: Sequence[InputName],
    forms: Tensor,
    gain: Tensor,
    report: Report = silent,
) -> GroupMatrix:
    """Measure the products of every pair of input groups.

    The interaction features are polynomials, so they are expanded exactly about the mean of the
    states: a product of two groups is what both add jointly by deviating from their mean. What an
    input does alone, or times another's mean, is first order and not a product. Hidden layers in
    front of the products (``prism-after``) are linearised as for their names; what that leaves out
    is counted as beyond pairs.

    Args:
        products: The products.
        observations: States, (N, inputs).
        names: One name per input.
        forms: From :func:`.names.branch_forms`, about the mean of the states.
        gain: How far a unit of every product moves the joint target, rad, (count,).
        report: Called after every pair.
    """
    masks, size = group_masks(names).to(observations.device), len(GROUPS)
    parts = products.read(observations)
    features = products.features(parts)
    whole = products.targets(parts, features)

    def distance(removed: Tensor) -> float:
        return float((whole - products.targets(parts, features - removed)).norm(dim=-1).mean())

    effect = torch.zeros(size, size)
    rest = features - _Expansion(products, observations).tangent()
    for (a, b), term in pair_terms(products, observations, masks):
        effect[a, b] = distance(term)
        rest = rest - term
        report()
    constants = products.branches(products.read(observations.mean(0, keepdim=True))).squeeze(0)
    strength = learned_strength(forms * observations.std(0), constants, gain, masks)
    # Untrained weights are the same for all normalised inputs, however much these vary here.
    spread = parts.inputs.std(0)
    if products.bypass is not None:
        spread[products.bypass.passed] = 0.0  # not in the products, trained or not
    squares, chance = strength.square(), untrained_squares(spread, masks)
    share = squares / squares.sum().clamp_min(1e-30)
    concentration = share / (chance / chance.sum()).clamp_min(1e-30)
    concentration[chance == 0] = float("nan")
    return GroupMatrix(effect, strength.cpu(), concentration.tril().cpu(), distance(rest))


def pair_terms(
    products: Products, observations: Tensor, masks: Tensor
) -> Iterator[tuple[tuple[int, int], Tensor]]:
    """Yield the second-order part of the features for each of :data:`PAIRS`, (N, latent)."""
    expansion = _Expansion(products, observations)
    deviations = [expansion.deviation(mask) for mask in masks]
    for a, b in PAIRS:
        bend = expansion.bend(deviations[a], deviations[b])
        yield (a, b), bend if a != b else bend / 2


class _Expansion:
    """The interaction features as a function of their factors, about the mean of some states.

    The factors are affine in the observation, or are taken as such, so a deviation of some inputs
    is one of the factors, and the derivatives can be taken there, where they are cheap.
    """

    def __init__(self, products: Products, observations: Tensor) -> None:
        self.products, self.centre = products, observations.mean(0, keepdim=True)
        self.shift = observations - self.centre
        self.base = self._factors(self.centre).expand(-1, len(observations), -1).clone()
        self.slope: Tensor | None = None
        if not products.affine:
            self.slope = mean_slope(
                lambda states: self._factors(states).movedim(1, 0), observations
            )

    def _factors(self, observations: Tensor) -> Tensor:
        return torch.stack(self.products.read(observations).factors)

    def _features(self, factors: Tensor) -> Tensor:
        return self.products.features(Parts(self.centre, tuple(factors)))

    def deviation(self, mask: Tensor | float = 1.0) -> Tensor:
        """Return how the factors deviate when some inputs do."""
        if self.slope is not None:
            return torch.einsum("ni,kji->knj", self.shift * mask, self.slope)
        return self._factors(self.centre + self.shift * mask) - self.base

    def tangent(self) -> Tensor:
        """Return the features to first order in all deviations."""
        found = torch.func.jvp(self._features, (self.base,), (self.deviation(),))
        return found[0] + found[1]

    def bend(self, one: Tensor, other: Tensor) -> Tensor:
        """Return the mixed second derivative of the features along two deviations."""

        def slope(factors: Tensor) -> Tensor:
            return torch.func.jvp(self._features, (factors,), (other,))[1]

        return torch.func.jvp(slope, (self.base,), (one,))[1]


def learned_strength(forms: Tensor, constants: Tensor, gain: Tensor, masks: Tensor) -> Tensor:
    """Return the size of the products of every two groups by their weights, (groups, groups).

    It is the standard deviation that they would have with independent standard normal inputs,
    times the gain, all products taken in quadrature.

    Args:
        forms: Linear forms of the branches, (branches, count, inputs), per typical input.
        constants: Values of the branches where they were expanded, (branches, count).
        gain: Effect of a unit of every product, (count,).
        masks: From :func:`group_masks`.
    """
    branches, count, _ = forms.shape
    total = masks.new_zeros(len(masks), len(masks))
    for index in range(count):
        bilinear = forms.new_zeros(forms.shape[-1], forms.shape[-1])
        for k in range(branches):
            for m in range(k):
                others = [n for n in range(branches) if n not in (k, m)]
                weight = constants[others, index].prod()
                bilinear += weight * torch.outer(forms[k, index], forms[m, index])
        # With S symmetric and z standard normal, z' S z has the variance 2 * sum(S^2).
        symmetric = (bilinear + bilinear.T) / 2
        total += 2 * gain[index] ** 2 * (masks @ symmetric.square() @ masks.T)
    return _fold(total).sqrt()


def untrained_squares(scale: Tensor, masks: Tensor) -> Tensor:
    """Return the squared strength to expect of independent weights, up to a factor."""
    squares = scale.square()
    sizes = masks @ squares
    full = torch.outer(sizes, sizes) + torch.diag(masks @ squares.square())
    return _fold(full)


def _fold(table: Tensor) -> Tensor:
    """Add the upper triangle of a symmetric table to the lower one."""
    return table.tril() + table.triu(1).T
