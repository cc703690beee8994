"""Turns single runs into numbers with intervals, tables and a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prism_motor import _console
from prism_motor.statistics import (
    Claim,
    Estimate,
    Measure,
    geometric_estimate,
    make_claim,
    with_holm,
)
from prism_motor.studies.networks import StudyArm
from prism_motor.studies.physics.robot import TARGETS, PhysicsTarget
from prism_motor.studies.physics.training import choose_arms

if TYPE_CHECKING:
    from prism_motor.studies.physics.config import PhysicsConfig
    from prism_motor.studies.physics.results import PhysicsResults

SETS = {
    "test": "Held-out test episodes: % of variance unexplained, 95 % interval",
    "extrapolation": "Faster than in training: % of variance unexplained, 95 % interval",
}
"""Sets that errors are measured on, with the titles of their tables."""

DUELS = (("prism", "mlp-matched"), ("prism", "product"), ("mlp-large", "mlp-matched"))
"""Arms that are compared with each other."""


@dataclass(frozen=True)
class PhysicsSummary:
    """One row of the table."""

    arm: StudyArm
    """The network."""
    parameters: int
    """Its parameters."""
    learning_rate: float
    """The chosen learning rate."""
    at_edge: bool
    """Whether it is the smallest or largest of the sweep."""
    errors: dict[str, dict[str, dict[int, float | None]]]
    """Unexplained share by set, target and seed; ``None`` if the network diverged."""

    def estimate(self, dataset: str, target: str) -> Estimate | None:
        """Return the geometric mean over seeds; ``None`` if any seed diverged."""
        errors = [error for error in self.errors[dataset][target].values() if error is not None]
        if len(errors) < len(self.errors[dataset][target]):
            return None
        return geometric_estimate(errors)

    def centre(self, dataset: str, target: str) -> float:
        """Return the geometric mean over seeds; infinite if any seed diverged."""
        found = self.estimate(dataset, target)
        return math.inf if found is None else found.centre

    def logarithms(self, dataset: str, target: str) -> dict[int, float]:
        """Return the logarithm of the error by seed; errors differ by factors."""
        errors = self.errors[dataset][target].items()
        return {seed: math.log(max(e, 1e-12)) for seed, e in errors if e is not None}


def summarise(config: PhysicsConfig, results: PhysicsResults) -> list[PhysicsSummary]:
    """Return one summary per arm, in the order of the comparison."""
    summaries = []
    for arm in choose_arms(config.arms):
        runs = results.of_arm(arm.name)
        rate = results.chosen[arm.name]
        summaries.append(
            PhysicsSummary(
                arm=arm,
                parameters=runs[0]["parameters"],
                learning_rate=rate,
                at_edge=rate in (min(config.learning_rates), max(config.learning_rates)),
                errors={
                    name: {
                        t.name: {run["seed"]: run[name][t.name] for run in runs} for t in TARGETS
                    }
                    for name in SETS
                },
            )
        )
    return summaries


def best_arm(summaries: Sequence[PhysicsSummary], dataset: str, target: str) -> PhysicsSummary:
    """Return the arm with the lowest error."""
    return min(summaries, key=lambda s: s.centre(dataset, target))


def verdict(summaries: Sequence[PhysicsSummary]) -> list[tuple[str, str]]:
    """Describe the results in sentences computed only from the numbers.

    Returns (subject, finding) pairs that read as one sentence: duels first, then one per target.
    """
    by_name = {s.arm.name: s for s in summaries}
    duels = [(by_name[a], by_name[b]) for a, b in DUELS if a in by_name and b in by_name]
    pairs = [(arm, reference, target) for arm, reference in duels for target in TARGETS]
    # All duels form one table of claims, which are corrected together.
    claims = with_holm([_claim(arm, reference, "test", target) for arm, reference, target in pairs])
    found = []
    for index, (arm, reference) in enumerate(duels):
        own = claims[index * len(TARGETS) : (index + 1) * len(TARGETS)]
        found.append(_duel(arm, reference, own))
    equal = [s for s in summaries if s.arm.budget_scale == 1.0]
    return found + [_best_of(target, equal) for target in TARGETS]


def _claim(
    arm: PhysicsSummary, reference: PhysicsSummary, dataset: str, target: PhysicsTarget
) -> Claim:
    """Compare the logarithms of two arms' errors, paired by seed."""
    measure = Measure(target.name, target.label, higher_is_better=False)
    ours, theirs = ((s.arm.label, s.logarithms(dataset, target.name)) for s in (arm, reference))
    return make_claim(ours, theirs, dataset, measure)


def _duel(
    arm: PhysicsSummary, reference: PhysicsSummary, claims: Sequence[Claim]
) -> tuple[str, str]:
    """Compare two arms over all targets on the test set."""
    groups: dict[str, list[str]] = {
        "lower test error for": [],
        "higher test error for": [],
        "no difference that these seeds can show for": [],
        "diverged for": [],
    }
    for claim, target in zip(claims, TARGETS, strict=True):
        centres = [s.centre("test", target.name) for s in (arm, reference)]
        if math.inf in centres:
            groups["diverged for"].append(target.label)
        elif claim.outcome in ("better", "worse"):
            better = claim.outcome == "better"
            ratio = math.exp(claim.comparison.difference) if claim.comparison else 1.0
            group = groups[f"{'lower' if better else 'higher'} test error for"]
            group.append(f"{target.label} ({100 * (ratio - 1):+.0f} %)".replace("-", "−"))
        else:
            groups["no difference that these seeds can show for"].append(target.label)
    parts = [f"{outcome} {', '.join(names)}" for outcome, names in groups.items() if names]
    return f"{arm.arm.label} against {reference.arm.label}:", f" {'; '.join(parts)}."


def _best_of(target: PhysicsTarget, summaries: Sequence[PhysicsSummary]) -> tuple[str, str]:
    """Name the best arm of equal size on both sets, and those that may be equally good."""
    best, level = _leaders(summaries, "test", target)
    error = best.estimate("test", target.name)
    if error is None:
        return f"{target.label}:", " every arm diverged."
    if len(summaries) == 1:
        return f"{target.label}:", f" test error {write_error(error)} %; no other arm to compare."
    if not level:
        tie = "better than every other arm"
    elif len(level) == len(summaries) - 1:
        tie = "no other arm is shown to be worse"
    else:
        tie = f"not shown to be worse: {', '.join(level)}"
    far, far_level = _leaders(summaries, "extrapolation", target)
    far_error = write_error(far.estimate("extrapolation", target.name))
    return (
        f"{target.label}:",
        f" lowest test error {best.arm.label}, {write_error(error)} %; {tie}. Faster than in "
        f"training {far.arm.label}, {far_error} %; {len(far_level)} of {len(summaries) - 1} others "
        "not shown to be worse.",
    )


def _leaders(
    summaries: Sequence[PhysicsSummary], dataset: str, target: PhysicsTarget
) -> tuple[PhysicsSummary, list[str]]:
    """Return the best arm and the labels of those not shown to be worse."""
    best = best_arm(summaries, dataset, target.name)
    others = [
        s for s in summaries if s is not best and math.isfinite(s.centre(dataset, target.name))
    ]
    claims = with_holm([_claim(best, other, dataset, target) for other in others])
    level = [claim.reference for claim in claims if claim.outcome != "better"]
    return best, level


def percent(share: float) -> str:
    """Format a share in percent with two significant digits."""
    value = float(f"{100 * share:.2g}")  # round first: 9.96 is 10, not 10.0
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:.0f}"


def write_error(found: Estimate | None) -> str:
    """Format an error in percent with its interval."""
    return "diverged" if found is None else f"{percent(found.centre)} {write_bounds(found)}".strip()


def write_bounds(found: Estimate) -> str:
    """Format the interval of an error in percent; empty if it has none."""
    if found.interval is None:
        return ""
    return f"[{percent(found.interval.low)}, {percent(found.interval.high)}]"


def text_tables(summaries: Sequence[PhysicsSummary]) -> str:
    """Format both tables for a terminal."""
    blocks = []
    for dataset, title in SETS.items():
        rows = [["arm", "params", "rate", *(target.label for target in TARGETS)]]
        for s in summaries:
            rate = f"{s.learning_rate:g}{'*' if s.at_edge else ''}"
            errors = [write_error(s.estimate(dataset, target.name)) for target in TARGETS]
            rows.append([s.arm.label, f"{s.parameters:,}", rate, *errors])
        blocks.append(f"{title}\n{_console.text_table(rows)}")
    if any(s.at_edge for s in summaries):
        blocks.append("* a rate at the edge of the sweep: a better one may lie beyond")
    return "\n\n".join(blocks)
