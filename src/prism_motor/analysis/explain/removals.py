"""What the joint target becomes without some of the learned products.

Every measurement is on given states: the policy is evaluated again on each, with the same
observation and without the product. What that does to walking is measured in
:mod:`prism_motor.analysis.explain.closed_loop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from prism_motor.analysis.explain.names import NamedProduct
from prism_motor.analysis.study import Report, silent

if TYPE_CHECKING:
    from prism_motor.analysis.explain.products import Parts, Products
    from prism_motor.analysis.rollouts import Rollout

SHOWN = 6
"""How many products are followed."""

_START, _SECONDS = 1.5, 2.6
"""The part of an episode that is shown, s: about four steps of each foot."""


@dataclass(frozen=True)
class Effect:
    """A change of the joint target over many states."""

    distance: float
    """Mean L2 norm over the joints, rad."""
    absolute: float
    """Mean absolute change of a joint's target, rad."""
    variance_share: float
    """Variance of the change over the variance of the target, both summed over the joints."""


def measure_effect(change: Tensor, targets: Tensor) -> Effect:
    """Summarise a change of the targets, both (states, joints)."""
    spread = float(targets.var(0).sum())
    return Effect(
        distance=float(change.norm(dim=-1).mean()),
        absolute=float(change.abs().mean()),
        variance_share=float(change.var(0).sum()) / spread if spread > 0 else 0.0,
    )


@torch.no_grad()
def remove_each(products: Products, parts: Parts, report: Report = silent) -> Tensor:
    """Return the change of the target by each single product, (count, states, joints), rad.

    It is the target with the product minus the one without it: what the product does.
    """
    whole = products.targets(parts, products.features(parts))
    changes = whole.new_empty(products.count, *whole.shape)
    keep = whole.new_ones(products.count)
    for index in range(products.count):
        keep[index] = 0.0
        changes[index] = whole - products.targets(parts, products.features(parts, keep))
        keep[index] = 1.0
        report()
    return changes


@torch.no_grad()
def remove_together(products: Products, parts: Parts, removed: Sequence[int] | Tensor) -> Tensor:
    """Return the change of the target by some products together, (states, joints), rad."""
    whole = products.targets(parts, products.features(parts))
    keep = whole.new_ones(products.count)
    keep[torch.as_tensor(removed, dtype=torch.long, device=keep.device)] = 0.0
    return whole - products.targets(parts, products.features(parts, keep))


@dataclass(frozen=True)
class RemovalCurve:
    """How far the target moves as more and more products are removed."""

    counts: tuple[int, ...]
    """How many are removed."""
    by_effect: tuple[float, ...]
    """The strongest by their single effect, ranked on other robots than those measured, rad."""
    by_strength: tuple[float, ...]
    """The strongest by their weights, rad."""
    random: tuple[float, ...]
    """Random ones, mean over the draws, rad."""
    random_low: tuple[float, ...]
    """2.5th percentile of the draws, rad."""
    random_high: tuple[float, ...]
    """97.5th percentile of the draws, rad."""


def removal_curve(
    products: Products,
    parts: Parts,
    by_effect: Tensor,
    by_strength: Tensor,
    *,
    draws: int,
    seed: int,
    report: Report = silent,
) -> RemovalCurve:
    """Compare the strongest products with equally many random ones.

    Args:
        products: The products.
        parts: States to measure on; the products must be ranked on others.
        by_effect: Products, strongest first, by effect.
        by_strength: The same by weights.
        draws: Random sets per number.
        seed: Seed of the draws.
        report: Called after every number, see :func:`curve_counts`.
    """
    generator = torch.Generator().manual_seed(seed)
    columns: list[tuple[float, float, float, float, float]] = []
    counts = curve_counts(products.count)
    for count in counts:

        def distance(removed: Tensor) -> float:
            return float(remove_together(products, parts, removed).norm(dim=-1).mean())

        # There is only one set of all products, however it is drawn.
        sets = [
            torch.randperm(products.count, generator=generator)[:count]
            for _ in range(draws if count < products.count else 1)
        ]
        random = np.array([distance(chosen) for chosen in sets])
        low, high = np.quantile(random, [0.025, 0.975])
        strongest = distance(by_effect[:count]), distance(by_strength[:count])
        columns.append((*strongest, float(random.mean()), float(low), float(high)))
        report()
    return RemovalCurve(tuple(counts), *zip(*columns, strict=True))


def curve_counts(count: int) -> list[int]:
    """Return the numbers of removed products that a curve has points for: 1, 2, 5, 10, ... all."""
    steps = [base * 10**power for power in range(5) for base in (1, 2, 5)]
    return [step for step in steps if step < count] + [count]


@dataclass(frozen=True)
class ProductTrace:
    """One product over time."""

    product: NamedProduct
    """The product."""
    joint: str
    """The joint whose target it changes most."""
    change: np.ndarray
    """What it adds to that joint's target, rad, (times,)."""


@dataclass(frozen=True)
class ProductFiring:
    """Products over time."""

    seconds: np.ndarray
    """Time since the episode began, s."""
    contacts: dict[str, np.ndarray]
    """Whether each foot is on the ground."""
    traces: list[ProductTrace]
    """The strongest products, strongest first."""


@torch.no_grad()
def follow_products(
    products: Products,
    rollout: Rollout,
    order: Sequence[int],
    named: Sequence[NamedProduct],
    joints: Sequence[str],
) -> ProductFiring:
    """Follow the strongest products along the longest episode.

    Args:
        products: The products.
        rollout: Recorded episodes.
        order: Products, strongest first.
        named: All products by name.
        joints: Names of the joints.
    """
    longest = int(np.bincount(rollout.episode).argmax())
    rows = (rollout.episode == longest).nonzero()[0]
    start, length = (round(value / rollout.control_dt) for value in (_START, _SECONDS))
    start = max(0, min(start, len(rows) - length))
    rows = rows[start : start + length]
    parts = products.read(torch.from_numpy(rollout.observations.values[rows]))
    traces = []
    for index in order[:SHOWN]:
        change = remove_together(products, parts, [index])
        joint = int(change.square().mean(0).argmax())
        traces.append(ProductTrace(named[index], joints[joint], change[:, joint].cpu().numpy()))
    feet = [n.removeprefix("contact_") for n in rollout.quantities.names if _is_contact(n)]
    return ProductFiring(
        seconds=rollout.step[rows] * rollout.control_dt,
        contacts={foot: rollout.quantities[f"contact_{foot}"][rows] > 0.5 for foot in feet},
        traces=traces,
    )


def _is_contact(name: str) -> bool:
    return name.startswith("contact_") and not name.startswith("contact_power")
