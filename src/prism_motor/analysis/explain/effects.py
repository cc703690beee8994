"""What each single product does to the joint target, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from prism_motor.analysis.explain.names import NamedProduct
from prism_motor.analysis.explain.removals import Effect, measure_effect
from prism_motor.statistics import Interval, bootstrap


@dataclass(frozen=True)
class ProductEffect:
    """One product and what it does."""

    product: NamedProduct
    """The product by name."""
    effect: Effect
    """Change of the target when only this product is removed."""
    interval: Interval | None
    """95 % interval of the distance, bootstrapped over groups of states; for the strongest only."""
    joint: str
    """The joint whose target it changes most."""


def measure_products(
    named: Sequence[NamedProduct],
    changes: Tensor,
    targets: Tensor,
    joints: Sequence[str],
    groups: np.ndarray,
    *,
    top: int,
    seed: int,
) -> list[ProductEffect]:
    """Return the effect of every product, strongest first.

    Args:
        named: The products.
        changes: Change of the targets by each (count, states, joints).
        targets: The targets with all of them (states, joints).
        joints: Names of the joints.
        groups: What each state belongs to; states of one group resemble each other.
        top: How many get an interval.
        seed: Of the bootstrap.
    """
    distances = changes.norm(dim=-1)
    order = distances.mean(-1).argsort(descending=True, stable=True)
    return [
        ProductEffect(
            product=named[i],
            effect=measure_effect(changes[i], targets),
            interval=_interval(distances[i], groups, seed) if rank < top else None,
            joint=joints[int(changes[i].square().mean(0).argmax())],
        )
        for rank, i in enumerate(order.tolist())
    ]


def _interval(distances: Tensor, groups: np.ndarray, seed: int) -> Interval | None:
    """Bootstrap a mean distance over the means of groups."""
    distances = distances.cpu()
    means = np.array([float(distances[groups == group].mean()) for group in np.unique(groups)])
    return bootstrap([means], lambda batch: batch.mean(axis=1), seed=seed)
