"""The strongest products along a few seconds of one robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from prism_motor.analysis.named_products import NamedProduct
from prism_motor.analysis.products import Products
from prism_motor.analysis.rollouts import Rollout

SHOWN = 6
"""How many products are followed."""

_START, _SECONDS = 1.5, 2.6
"""The part of an episode that is shown, s: about four steps of each foot."""


@dataclass(frozen=True)
class Trace:
    """One product over time."""

    product: NamedProduct
    """The product."""
    joint: str
    """The joint whose target it changes most."""
    change: np.ndarray
    """What it adds to that joint's target, rad, (times,)."""


@dataclass(frozen=True)
class Firing:
    """Products over time."""

    seconds: np.ndarray
    """Time since the episode began, s."""
    contacts: dict[str, np.ndarray]
    """Whether each foot is on the ground."""
    traces: list[Trace]
    """The strongest products, strongest first."""


@torch.no_grad()
def follow_products(
    products: Products,
    rollout: Rollout,
    order: Sequence[int],
    named: Sequence[NamedProduct],
    joints: Sequence[str],
) -> Firing:
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
    whole = products.targets(parts, products.features(parts))
    traces = []
    for index in order[:SHOWN]:
        keep = torch.ones(products.count)
        keep[index] = 0.0
        change = whole - products.targets(parts, products.features(parts, keep))
        joint = int(change.square().mean(0).argmax())
        traces.append(Trace(named[index], joints[joint], change[:, joint].numpy()))
    feet = [n.removeprefix("contact_") for n in rollout.quantities.names if _is_contact(n)]
    return Firing(
        seconds=rollout.step[rows] * rollout.control_dt,
        contacts={foot: rollout.quantities[f"contact_{foot}"][rows] > 0.5 for foot in feet},
        traces=traces,
    )


def _is_contact(name: str) -> bool:
    return name.startswith("contact_") and not name.startswith("contact_power")
