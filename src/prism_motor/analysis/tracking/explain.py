"""``prism explain`` of tracking policies: the products of the filter, removed one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError, check_choice
from prism_motor._ranges import Seed, Threads, between
from prism_motor.analysis.explain.closed_loop import LinearReplacement
from prism_motor.analysis.explain.effects import ProductEffect, measure_products
from prism_motor.analysis.explain.figures import draw_curve
from prism_motor.analysis.explain.finding import describe_gates, product_table, record_product
from prism_motor.analysis.explain.names import branch_forms, name_products
from prism_motor.analysis.explain.products import Parts
from prism_motor.analysis.explain.removals import (
    Effect,
    RemovalCurve,
    curve_counts,
    measure_effect,
    removal_curve,
    remove_each,
)
from prism_motor.analysis.study import Finding, Report, ResultTable, Study, StudyConfig
from prism_motor.analysis.subjects import Subject
from prism_motor.analysis.tracking.products import FilterProducts, filter_products
from prism_motor.analysis.tracking.rollouts import Act, follow, read_clips
from prism_motor.domains import DOMAINS
from prism_motor.tracking.conditions import CONDITIONS
from prism_motor.tracking.evaluation import Piece, cut_pieces, measure
from prism_motor.tracking.loading import LoadedPolicy
from prism_motor.tracking.references import References

_PIECE = 10.0
"""Longest piece of a clip that is tracked, s."""

_WITHOUT = ("whole policy", "without the strongest", "without random ones", "without any")
"""Who tracks in closed loop."""


@dataclass(frozen=True)
class TrackingExplainConfig(StudyConfig, section="explain"):
    """Which states, and how many."""

    condition: str = "nominal"
    """One of nominal, low-friction, payload, training."""
    motion: str = ""
    """Clip to track: the name of a shipped one, or a file; default: all of the training."""
    states: Annotated[int, between(2, 10_000_000)] = 600
    """States, spread evenly over the rollouts, on which every product is removed."""
    top: Annotated[int, between(1, 10_000)] = 10
    """Products in the table, and how many are compared with random ones in closed loop."""
    draws: Annotated[int, between(1, 100_000)] = 20
    """Random sets of products that the strongest are compared with."""
    seed: Seed = 1000
    """Seed of the random sets, and of the condition."""
    closed_loop: bool = True
    """Whether the clips are also tracked without products."""
    threads: Threads = 1
    """Threads of the simulation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("condition", self.condition, CONDITIONS)


@dataclass(frozen=True)
class FilterExplanation:
    """What is known about the products of a filter."""

    products: list[ProductEffect]
    """All products, strongest first."""
    removed: Effect
    """Change of the target when all products are removed at once."""
    linear: Effect
    """The same when they are replaced by their best linear approximation."""
    gates: tuple[Tensor, float] | None
    """Gates (degree - 1, features) and where they started."""
    curve: RemovalCurve
    """The strongest products against random ones."""
    closed_loop: dict[str, dict[str, float]]
    """Upright share and EMD, mean over pieces, by who tracks."""


def explain(subject: Subject, config: TrackingExplainConfig, report: Report) -> FilterExplanation:
    """Explain the filter of a policy on states that it visits while it stands."""
    loaded: LoadedPolicy = subject.policy
    products = filter_products(loaded)
    references, pieces = _plan(loaded, config)
    rows, _ = follow(
        loaded, references, pieces, config.condition, seed=config.seed, threads=config.threads,
        report=report,
    )  # fmt: skip
    usable = np.flatnonzero(rows.upright & (rows.steps > loaded.config.task.history))
    count = min(config.states, len(usable))
    if count < 2:
        raise InputError(
            "The robot fell before its history was full, so there are no states to explain the "
            "policy on. Give a policy that stands, or another --condition."
        )
    rows = rows.take(usable[np.linspace(0, len(usable) - 1, count).round().astype(int)])
    # Seconds of a piece are what resembles itself: intervals and halves are of these.
    blocks = rows.robots * 1_000_000 + rows.steps // round(1 / loaded.config.task.control_dt)
    _, blocks = np.unique(blocks, return_inverse=True)
    states = products.rows(rows.observations, rows.latents)
    with torch.no_grad():
        parts = products.read(states)
        changes = remove_each(products, parts, report)
        targets = products.targets(parts, products.features(parts))
        bare = products.targets(parts, products.first_order(parts))
        linear = products.targets(parts, LinearReplacement(products, parts, blocks).held_out)
    forms = branch_forms(products, states)[..., products.history]
    named = name_products(products, products.names(), forms, states.std(0)[products.history])
    distances = changes.norm(dim=-1)
    order = distances.mean(-1).argsort(descending=True, stable=True)
    strength = torch.tensor([product.strength for product in named])
    ranked = torch.from_numpy(blocks % 2 == 0).to(products.device)
    curve = removal_curve(
        products,
        Parts(parts.inputs[~ranked], tuple(factor[~ranked] for factor in parts.factors)),
        distances[:, ranked].mean(-1).argsort(descending=True, stable=True),
        strength.argsort(descending=True, stable=True),
        draws=config.draws,
        seed=config.seed,
        report=report,
    )
    joints = [name.replace("_", " ") for name in _joints(loaded)]
    return FilterExplanation(
        products=measure_products(
            named, changes, targets, joints, blocks, top=config.top, seed=config.seed
        ),
        removed=measure_effect(targets - bare, targets),
        linear=measure_effect(targets - linear, targets),
        gates=products.gates(),
        curve=curve,
        closed_loop=_track_without(loaded, products, order, (references, pieces), config, report),
    )


def _joints(loaded: LoadedPolicy) -> Sequence[str]:
    from prism_motor.sim.robots import make_robot

    return make_robot(loaded.config.task.robot).joint_names


def _plan(loaded: LoadedPolicy, config: TrackingExplainConfig) -> tuple[References, list[Piece]]:
    references = read_clips(loaded, config.motion)
    return references, cut_pieces(references, _PIECE, loaded.config.task.control_dt)


def _track_without(
    loaded: LoadedPolicy,
    products: FilterProducts,
    order: Tensor,
    plan: tuple[References, list[Piece]],
    config: TrackingExplainConfig,
    report: Report,
) -> dict[str, dict[str, float]]:
    """Track all pieces with the whole policy, and without some products."""
    if not config.closed_loop:
        return {}
    top, generator = min(config.top, products.count), torch.Generator().manual_seed(config.seed)
    removed = (
        order[:0],
        order[:top].cpu(),
        torch.randperm(products.count, generator=generator)[:top],
        torch.arange(products.count),
    )
    found = {}
    for name, chosen in zip(_WITHOUT, removed, strict=True):
        _, tracked = follow(
            loaded, *plan, config.condition, act=_without(products, chosen), seed=config.seed,
            threads=config.threads, report=report,
        )  # fmt: skip
        measures = [measure(one, plan[0], loaded.config.task.control_dt) for one in tracked]
        title = f"{name} ({top})" if name in _WITHOUT[1:3] else name
        found[title] = {
            field: float(np.mean([one[field] for one in measures])) for field in ("upright", "emd")
        }
    return found


def _without(products: FilterProducts, removed: Tensor) -> Act:
    """Return the policy without some products."""
    keep = torch.ones(products.count, device=products.device)
    keep[removed.to(keep.device)] = 0.0

    def act(observations: Tensor, latents: Tensor) -> Tensor:
        parts = products.read(products.rows(observations, latents))
        return products.act(parts, products.features(parts, keep))

    return act


def _load(
    paths: Sequence[Path], checkpoint: int | None, config: TrackingExplainConfig
) -> tuple[Subject, list[str]]:
    loaded = DOMAINS["tracking"].place_subject(paths[0], checkpoint, config.device)
    filter_products(loaded)  # refuses policies without products before anything is simulated
    return Subject(paths[0], loaded, loaded.config.arm), []


def _count(subject: Subject, config: TrackingExplainConfig) -> int:
    count = filter_products(subject.policy).count
    rollouts = 1 + len(_WITHOUT) * config.closed_loop
    steps = max(piece.frames for piece in _plan(subject.policy, config)[1]) - 1
    return rollouts * steps + count + len(curve_counts(count))


def _run(subject: Subject, config: TrackingExplainConfig, report: Report) -> Finding:
    found, loaded = explain(subject, config, report), subject.policy
    tables = {"": product_table(found.products, config.top)}
    if found.closed_loop:
        rows = [
            [name, f"{100 * one['upright']:.1f}", f"{one['emd']:.3f}"]
            for name, one in found.closed_loop.items()
        ]
        tables["closed_loop"] = ResultTable(["closed loop", "upright, %", "EMD, rad"], rows)
    return Finding(
        title=(
            f"Learned products of the filter of {subject.arm} ({loaded.config.preset}, training "
            f"seed {loaded.config.seed}, update {loaded.step})"
        ),
        caption=_caption(found, config),
        tables=tables,
        notes=describe_gates(found.gates),
        data={
            "about": {**subject.about, "condition": config.condition},
            "all_removed": asdict(found.removed),
            "all_linear": asdict(found.linear),
            "products": [record_product(entry) for entry in found.products],
            "removal_curve": asdict(found.curve),
            "closed_loop": found.closed_loop,
        },
        figures={"removal": lambda: draw_curve(found.curve, found.gates)},
    )


def _caption(found: FilterExplanation, config: TrackingExplainConfig) -> str:
    text = (
        "Change of the joint target when one product of the history's filter is removed, on states "
        f"of the clips that it tracks ({config.condition}) while the robot stands; the interval is "
        "over seconds of this one policy. A product is named by the past input with the largest "
        "weight of each factor, per standard deviation of the input; the last column says how much "
        f"of the weight the names stand for. All {len(found.products)} products removed at once "
        f"move the target by {found.removed.distance:.3f} rad, which is "
        f"{100 * found.removed.variance_share:.1f} % of its variance. With a linear map of what "
        "the actor sees in their place, fitted on other seconds, "
        f"{100 * found.linear.variance_share:.2f} % of the variance remains unexplained."
    )
    if found.closed_loop:
        text += " Closed loop: mean over the pieces of all clips; EMD does not see a fall."
    return text


EXPLAIN_TRACKING = Study(
    name="explain",
    domain="tracking",
    help="""Show which products of inputs a policy learned and what happens without them.

Every product of the history's filter is removed alone on states of rollouts, and the change of the
joint target is measured. The run must have the polynomial filter (prism). Writes explain.json and a
figure to RUN/analysis/explain.""",
    config=TrackingExplainConfig,
    load=_load,
    count=_count,
    run=_run,
    single=True,
)
"""``prism explain`` of tracking runs."""
