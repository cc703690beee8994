"""The study of a policy's learned products and their effect, from one rollout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.analysis.explain.closed_loop import (
    VARIANTS,
    LinearReplacement,
    episode_steps,
    make_variants,
    walk,
)
from prism_motor.analysis.explain.effects import measure_products
from prism_motor.analysis.explain.explanation import ExplainConfig, Explanation
from prism_motor.analysis.explain.finding import make_finding
from prism_motor.analysis.explain.groups import PAIRS, measure_groups
from prism_motor.analysis.explain.names import (
    NamedProduct,
    branch_forms,
    name_inputs,
    name_products,
)
from prism_motor.analysis.explain.products import Parts, Products, WalkingProducts, products_of
from prism_motor.analysis.explain.removals import (
    RemovalCurve,
    curve_counts,
    follow_products,
    measure_effect,
    removal_curve,
    remove_each,
)
from prism_motor.analysis.recording import record
from prism_motor.analysis.study import Finding, Report, Study, silent
from prism_motor.analysis.subjects import Subject
from prism_motor.locomotion.domain import LOCOMOTION
from prism_motor.locomotion.policy import WalkingPolicy

if TYPE_CHECKING:
    from prism_motor.analysis.explain.closed_loop import WalkSummary
    from prism_motor.analysis.rollouts import Rollout


def explain(
    policy: WalkingPolicy,
    config: ExplainConfig | None = None,
    *,
    run: str | Path = "",
    report: Report = silent,
) -> Explanation:
    """Explain a policy; one without products is refused before anything is simulated.

    Args:
        policy: A trained policy.
        config: Which states, and how many.
        run: Where the policy came from, for the record.
        report: Called after every unit of work, see :func:`count_work`.
    """
    config = config or ExplainConfig()
    products = products_of(policy)
    task = policy.config.task
    # States that the policy visits, spread evenly over a rollout.
    rollout = record(
        policy, task, config.condition, seed=config.seed, envs=config.envs,
        steps=_steps(policy, config), features=False, threads=config.threads, run=run,
        report=report,
    )  # fmt: skip
    rows = _choose_states(rollout, task.observations.actor_frames, config.states)
    robots = rollout.environment[rows]
    observations = torch.from_numpy(rollout.observations.values[rows]).to(policy.device)
    parts = products.read(observations)
    # Every product alone: what it does, how far it moves the target, what it is called.
    changes = remove_each(products, parts, report)
    distances = changes.norm(dim=-1)  # (count, states)
    forms = branch_forms(products, observations)
    named = name_products(products, name_inputs(task), forms, observations.std(0))
    order = distances.mean(-1).argsort(descending=True, stable=True)
    # All products together: removed, and replaced by a linear map.
    with torch.no_grad():
        targets = products.targets(parts, products.features(parts))
        bare = products.targets(parts, products.first_order(parts))
        size = products.values(parts).abs().mean(0).clamp_min(1e-12)
        replacement = LinearReplacement(products, parts, robots)
        linear = products.targets(parts, replacement.held_out)
    joints = [name.removeprefix("target_").replace("_", " ") for name in rollout.targets.names]
    # Against random products, and by groups of inputs.
    curve = _compare_with_random(products, parts, distances, named, robots, config, report)
    gain = distances.mean(-1) / size
    groups = measure_groups(products, observations, name_inputs(task), forms, gain, report)
    return Explanation(
        config=config,
        about=rollout.about,
        products=measure_products(
            named, changes, targets, joints, robots, top=config.top, seed=config.seed
        ),
        removed=measure_effect(targets - bare, targets),
        linear=measure_effect(targets - linear, targets),
        target_spread=float(targets.var(0).sum().sqrt()),
        gates=products.gates(),
        curve=curve,
        groups=groups,
        firing=follow_products(products, rollout, order.tolist(), named, joints),
        closed_loop=_walk(policy, products, order, replacement, config, report),
    )


def count_work(policy: WalkingPolicy, config: ExplainConfig) -> int:
    """Return how often :func:`explain` reports."""
    count = products_of(policy).count
    closed_loop = VARIANTS * episode_steps(policy) if config.closed_loop else 0
    on_states = count + len(curve_counts(count)) + len(PAIRS)
    return _steps(policy, config) + on_states + closed_loop


def _steps(policy: WalkingPolicy, config: ExplainConfig) -> int:
    return round(config.seconds / policy.config.task.simulation.control_dt)


def _choose_states(rollout: Rollout, frames: int, count: int) -> np.ndarray:
    """Return rows spread evenly over the rollout, without those whose history is not full yet."""
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
    report: Report,
) -> RemovalCurve:
    """Rank on every second robot, measure on the others."""
    ranked = torch.from_numpy(robots % 2 == 0).to(products.device)
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


def _walk(
    policy: WalkingPolicy,
    products: WalkingProducts,
    order: Tensor,
    replacement: LinearReplacement,
    config: ExplainConfig,
    report: Report,
) -> dict[str, WalkSummary] | None:
    if not config.closed_loop:
        return None
    top = min(config.top, products.count)
    variants = make_variants(products, order, top, replacement, envs=config.envs, seed=config.seed)
    found: dict[str, WalkSummary] = {}
    for title, variant in variants.items():
        found[title] = walk(
            policy, products, variant, condition=config.condition, seed=config.seed,
            envs=config.envs, threads=config.threads, report=report,
        )  # fmt: skip
    return found


def _load(
    paths: Sequence[Path], checkpoint: int | None, config: ExplainConfig
) -> tuple[Subject, list[str]]:
    policy = LOCOMOTION.place_policy(paths[0], checkpoint, config.device)
    products_of(policy)  # refuses policies without products before anything is simulated
    return Subject(paths[0], policy, policy.config.arm), []


def _count(subject: Subject, config: ExplainConfig) -> int:
    return count_work(subject.policy, config)


def _run(subject: Subject, config: ExplainConfig, report: Report) -> Finding:
    return make_finding(explain(subject.policy, config, run=subject.path, report=report))


EXPLAIN = Study(
    name="explain",
    domain="locomotion",
    help="""Show which products of inputs a policy learned and what happens without them.

Every product is removed alone on states of a rollout, and the change of the joint target is
measured. The run must have a prism actor (prism, prism-residual, prism-after, ...). Writes
explain.json and figures to RUN/analysis/explain.""",
    config=ExplainConfig,
    load=_load,
    count=_count,
    run=_run,
    single=True,
)
"""``prism explain``."""
