"""What a policy's learned products are and what they do, from one rollout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prism_motor._errors import InputError
from prism_motor._progress import Progress
from prism_motor.analysis.closed_loop import make_variants, walk
from prism_motor.analysis.explanation import ExplainConfig, Explanation, ProductEffect
from prism_motor.analysis.firing import follow_products
from prism_motor.analysis.groups import PAIRS, measure_groups
from prism_motor.analysis.named_products import NamedProduct, branch_forms, name_products
from prism_motor.analysis.names import name_inputs
from prism_motor.analysis.products import Parts, Products, products_of
from prism_motor.analysis.recording import record
from prism_motor.analysis.removals import (
    RemovalCurve,
    curve_counts,
    measure_effect,
    removal_curve,
    remove_each,
)
from prism_motor.analysis.rollouts import Rollout
from prism_motor.analysis.stand_in import LinearStandIn
from prism_motor.locomotion.policy import Policy
from prism_motor.locomotion.summary import Summary
from prism_motor.statistics import Interval, bootstrap


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
        stand_in = LinearStandIn(products, parts, robots)
        linear = products.targets(parts, stand_in.held_out)
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
        linear=measure_effect(targets - linear, targets),
        target_spread=float(targets.var(0).sum().sqrt()),
        gates=products.gates(),
        curve=curve,
        groups=groups,
        firing=follow_products(products, rollout, order.tolist(), named, joints),
        closed_loop=_walk(policy, products, order, stand_in, config, threads, progress),
    )


def _choose_states(rollout: Rollout, frames: int, count: int) -> np.ndarray:
    """Return rows evenly over the rollout, without those whose history is not full yet."""
    usable = (rollout.step >= frames).nonzero()[0]
    if len(usable) < 2:
        raise InputError(
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
    stand_in: LinearStandIn,
    config: ExplainConfig,
    threads: int,
    progress: bool,
) -> dict[str, Summary] | None:
    if not config.closed_loop:
        return None
    top = min(config.top, products.count)
    variants = make_variants(products, order, top, stand_in, envs=config.envs, seed=config.seed)
    found: dict[str, Summary] = {}
    with _stage("Closed loop", len(variants), progress) as report:
        for title, variant in variants.items():
            found[title] = walk(
                policy, products, variant, condition=config.condition, seed=config.seed,
                envs=config.envs, threads=threads,
            )  # fmt: skip
            report(title)
    return found


@contextmanager
def _stage(title: str, total: int, show: bool) -> Iterator[Any]:
    """Show the progress of one stage, or none."""
    if not show:
        yield lambda *_: None
        return
    with Progress(title, total, lines=2) as bar:
        yield bar.step
