"""What a policy's learned products are and what they do, from one rollout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prism._progress import Progress
from prism.analysis.closed_loop import keep_masks, walk_without
from prism.analysis.firing import Firing, follow_products
from prism.analysis.groups import PAIRS, GroupMatrix, measure_groups
from prism.analysis.named_products import NamedProduct, branch_forms, name_products
from prism.analysis.names import name_inputs
from prism.analysis.products import Parts, Products, products_of
from prism.analysis.recording import record
from prism.analysis.removals import (
    Effect,
    RemovalCurve,
    curve_counts,
    measure_effect,
    removal_curve,
    remove_each,
    replace_by_linear,
)
from prism.analysis.rollouts import Rollout
from prism.learn.policy import Policy
from prism.locomotion.conditions import find_condition
from prism.locomotion.summary import Summary
from prism.nn.checks import check_size
from prism.statistics import Interval, bootstrap


@dataclass(frozen=True)
class ExplainConfig:
    """On which states, and how much."""

    condition: str = "nominal"
    """Name of the condition that the robots walk under."""
    envs: int = 24
    """Robots; one half ranks the products, the other compares them with random ones."""
    seconds: float = 12.0
    """How long each walks."""
    states: int = 1200
    """States of theirs, evenly over the rollout, that every product is removed on."""
    top: int = 10
    """Products in the table, and the number that is compared with random ones in closed loop."""
    draws: int = 20
    """Random sets of products of each size."""
    seed: int = 1000
    """Seed of the rollout and of the random sets."""
    closed_loop: bool = True
    """Whether the robots also walk without products, for a whole episode each."""

    def __post_init__(self) -> None:
        find_condition(self.condition)
        for name in ("envs", "states", "top", "draws"):
            check_size("explain", name, getattr(self, name))
        if self.envs < 2:
            raise ValueError("explain: envs must be at least 2: one half ranks, one half compares.")
        if self.seconds < 1:
            raise ValueError(f"explain: seconds must be at least 1, got {self.seconds}.")
        if self.seed < 0:
            raise ValueError(f"explain: seed must not be negative, got {self.seed}.")


@dataclass(frozen=True)
class ProductEffect:
    """One product and what it does."""

    product: NamedProduct
    """The product by name."""
    effect: Effect
    """Change of the target when it is removed alone."""
    interval: Interval | None
    """95 % interval of the distance, bootstrapped over robots; of the strongest alone."""
    joint: str
    """The joint whose target it changes most."""


@dataclass(frozen=True)
class Explanation:
    """Everything that is known about a policy's products."""

    config: ExplainConfig
    about: dict[str, Any]
    """Where the states came from."""
    products: list[ProductEffect]
    """All products, strongest first."""
    removed: Effect
    """Change of the target when all products are removed at once."""
    linear: Effect
    """The same when they are replaced by their best linear approximation."""
    target_spread: float
    """Standard deviation of the joint target, all joints in quadrature, rad."""
    gates: tuple[Tensor, float] | None
    """Gates (degree - 1, features) and where they started; ``None`` without gates."""
    curve: RemovalCurve
    """The strongest products against random ones."""
    groups: GroupMatrix
    """Products by input group."""
    firing: Firing
    """The strongest products along a few seconds of one robot."""
    closed_loop: dict[str, Summary] | None
    """How the robots walk without products, by what is missing."""


def explain(
    policy: Policy,
    config: ExplainConfig | None = None,
    *,
    run: str | Path = "",
    threads: int = 1,
    progress: bool = False,
) -> Explanation:
    """Explain a policy; refuses one without products before anything is simulated.

    Args:
        policy: A trained policy.
        config: On which states, and how much.
        run: Where the policy came from, for the record.
        threads: Threads of the simulation; they do not change the result.
        progress: Whether to show progress.
    """
    config = config or ExplainConfig()
    products = products_of(policy)
    task = policy.config.task
    steps = round(config.seconds / task.simulation.control_dt)
    with _stage("Rollout", steps, progress) as report:
        rollout = record(
            policy, task, config.condition, seed=config.seed, envs=config.envs, steps=steps,
            features=False, threads=threads, run=run, report=report,
        )  # fmt: skip
    rows = _choose_states(rollout, task.observations.actor_frames, config.states)
    robots = rollout.environment[rows]
    observations = torch.from_numpy(rollout.observations.values[rows])
    parts = products.read(observations)
    with _stage("Products", products.count, progress) as report:
        changes = remove_each(products, parts, report)
    distances = changes.norm(dim=-1)  # (count, states)
    forms = branch_forms(products, observations.mean(0))
    named = name_products(products, name_inputs(task), forms, observations.std(0))
    order = distances.mean(-1).argsort(descending=True, stable=True)
    with torch.no_grad():
        targets = products.targets(parts, products.features(parts))
        bare = products.targets(parts, products.first_order(parts))
        size = products.values(parts).abs().mean(0).clamp_min(1e-12)
    joints = [name.removeprefix("target_").replace("_", " ") for name in rollout.targets.names]
    with _stage("Random control", len(curve_counts(products.count)), progress) as report:
        curve = _compare_with_random(products, parts, distances, named, robots, config, report)
    with _stage("Input groups", len(PAIRS), progress) as report:
        groups = measure_groups(
            products, observations, name_inputs(task), forms, distances.mean(-1) / size, report
        )
    return Explanation(
        config=config,
        about=rollout.about,
        products=[
            ProductEffect(
                product=named[i],
                effect=measure_effect(changes[i], targets),
                interval=_interval(distances[i], robots, config) if rank < config.top else None,
                joint=joints[int(changes[i].square().mean(0).argmax())],
            )
            for rank, i in enumerate(order.tolist())
        ],
        removed=measure_effect(targets - bare, targets),
        linear=measure_effect(replace_by_linear(products, parts, robots), targets),
        target_spread=float(targets.var(0).sum().sqrt()),
        gates=products.gates(),
        curve=curve,
        groups=groups,
        firing=follow_products(products, rollout, order.tolist(), named, joints),
        closed_loop=_walk(policy, products, order, config, threads, progress),
    )


def _choose_states(rollout: Rollout, frames: int, count: int) -> np.ndarray:
    """Return rows evenly over the rollout, without those whose history is not full yet."""
    usable = (rollout.step >= frames).nonzero()[0]
    if len(usable) < 2:
        raise ValueError(
            "The robots fell before their observation history was full, so there are no states to "
            "explain the policy on. Give a policy that walks, or another --condition."
        )
    return usable[np.linspace(0, len(usable) - 1, min(count, len(usable))).round().astype(int)]


def _compare_with_random(
    products: Products,
    parts: Parts,
    distances: Tensor,
    named: list[NamedProduct],
    robots: np.ndarray,
    config: ExplainConfig,
    report: Any,
) -> RemovalCurve:
    """Rank on every second robot, measure on the others."""
    ranked = torch.from_numpy(robots % 2 == 0)
    strength = torch.tensor([product.strength for product in named])
    return removal_curve(
        products,
        Parts(parts.inputs[~ranked], tuple(factor[~ranked] for factor in parts.factors)),
        distances[:, ranked].mean(-1).argsort(descending=True, stable=True),
        strength.argsort(descending=True, stable=True),
        draws=config.draws,
        seed=config.seed,
        report=report,
    )


def _interval(distances: Tensor, robots: np.ndarray, config: ExplainConfig) -> Interval | None:
    """Bootstrap a mean distance over robots: states of one robot resemble each other."""
    means = np.array([float(distances[robots == robot].mean()) for robot in np.unique(robots)])
    return bootstrap([means], lambda batch: batch.mean(axis=1), seed=config.seed)


def _walk(
    policy: Policy,
    products: Products,
    order: Tensor,
    config: ExplainConfig,
    threads: int,
    progress: bool,
) -> dict[str, Summary] | None:
    if not config.closed_loop:
        return None
    top = min(config.top, products.count)
    masks = keep_masks(order, top, products.count, config.envs, config.seed)
    found: dict[str, Summary] = {}
    with _stage("Closed loop", len(masks), progress) as report:
        for title, keep in masks.items():
            found[title] = walk_without(
                policy, products, keep, condition=config.condition, seed=config.seed,
                envs=config.envs, threads=threads,
            )  # fmt: skip
            report()
    return found


@contextmanager
def _stage(title: str, total: int, show: bool) -> Iterator[Any]:
    """Show the progress of one stage, or none."""
    if not show:
        yield lambda: None
        return
    with Progress(title, total, lines=2) as bar:
        yield bar.step
