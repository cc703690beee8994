"""From single runs to numbers with intervals, a table and a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prism_motor.studies.physics.config import PhysicsConfig
from prism_motor.studies.physics.contenders import Contender, choose_contenders
from prism_motor.studies.physics.results import Results
from prism_motor.studies.physics.targets import TARGETS, Target

SETS = ("test", "extrapolation")


@dataclass(frozen=True)
class Estimate:
    """Geometric mean over seeds with its 95 % interval."""

    centre: float
    low: float
    high: float

    def overlaps(self, other: Estimate) -> bool:
        """Say whether the intervals share a value."""
        return self.low <= other.high and other.low <= self.high

    def __str__(self) -> str:
        if not math.isfinite(self.centre):
            return "diverged"
        return f"{percent(self.centre)} [{percent(self.low)}, {percent(self.high)}]"


def percent(share: float) -> str:
    """Write a share in percent with two significant digits."""
    value = float(f"{100 * share:.2g}")  # rounded first: 9.96 is 10, not 10.0
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:.0f}"


def estimate(values: Sequence[float | None]) -> Estimate:
    """Return the geometric mean and the t interval of the logarithms.

    Errors are positive and differ by factors, so their logarithms are what is near normal. A run
    that diverged (``None``) makes the estimate infinite.
    """
    from scipy import stats

    if any(value is None for value in values):
        return Estimate(math.inf, math.inf, math.inf)
    logs = np.log(np.maximum(np.array(values, dtype=float), 1e-12))
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    return Estimate(*(math.exp(logs.mean() + shift) for shift in (0.0, -half, half)))


@dataclass(frozen=True)
class ArmSummary:
    """One row of the table."""

    contender: Contender
    parameters: int
    learning_rate: float
    at_edge: bool
    """Whether the chosen rate is the smallest or largest of the sweep."""
    errors: dict[str, dict[str, Estimate]]
    """Unexplained share by set (test, extrapolation) and target."""


def summarise(config: PhysicsConfig, results: Results) -> list[ArmSummary]:
    """Return one summary per arm, in the order of the comparison."""
    summaries = []
    for contender in choose_contenders(config.arms):
        runs = results.of_arm(contender.name)
        rate = results.chosen[contender.name]
        errors = {
            name: {t.name: estimate([run[name][t.name] for run in runs]) for t in TARGETS}
            for name in SETS
        }
        summaries.append(
            ArmSummary(
                contender=contender,
                parameters=runs[0]["parameters"],
                learning_rate=rate,
                at_edge=rate in (min(config.learning_rates), max(config.learning_rates)),
                errors=errors,
            )
        )
    return summaries


def best_arm(summaries: Sequence[ArmSummary], dataset: str, target: str) -> ArmSummary:
    """Return the arm with the lowest error."""
    return min(summaries, key=lambda s: s.errors[dataset][target].centre)


def verdict(summaries: Sequence[ArmSummary]) -> list[tuple[str, str]]:
    """Say in plain words what the numbers show, computed from them alone.

    Returns (subject, finding) pairs that read as one sentence: duels first, then one per target.
    """
    by_name = {s.contender.name: s for s in summaries}
    found = [
        _duel(by_name[name], by_name[reference])
        for name, reference in (("prism2", "mlp"), ("prism2", "product"), ("mlp2x", "mlp"))
        if name in by_name and reference in by_name
    ]
    equal = [s for s in summaries if s.contender.budget_scale == 1.0]
    return found + [_best_of(target, equal) for target in TARGETS]


def _duel(arm: ArmSummary, reference: ArmSummary) -> tuple[str, str]:
    """Compare two arms over all targets on the test set."""
    groups: dict[str, list[str]] = {"lower for": [], "higher for": [], "not separable for": []}
    for target in TARGETS:
        ours, theirs = arm.errors["test"][target.name], reference.errors["test"][target.name]
        if ours.overlaps(theirs):
            groups["not separable for"].append(target.label)
        else:
            groups["lower for" if ours.high < theirs.low else "higher for"].append(target.label)
    parts = [f"{outcome} {', '.join(names)}" for outcome, names in groups.items() if names]
    return (
        f"{arm.contender.label} against {reference.contender.label}:",
        f" test error {'; '.join(parts)}.",
    )


def _best_of(target: Target, summaries: Sequence[ArmSummary]) -> tuple[str, str]:
    """Name the best arm of equal size on both sets, and those that cannot be told from it."""
    best, level = _leaders(summaries, "test", target.name)
    error = best.errors["test"][target.name]
    if not math.isfinite(error.centre):
        return f"{target.label}:", " every arm diverged."
    tie = f"not separable from {', '.join(level)}" if level else "no other interval overlaps"
    far, far_level = _leaders(summaries, "extrapolation", target.name)
    return (
        f"{target.label}:",
        f" lowest test error {best.contender.label}, {error} %; {tie}. Faster than in training "
        f"{far.contender.label}, {far.errors['extrapolation'][target.name]} %; "
        f"{len(far_level)} of {len(summaries) - 1} other intervals overlap.",
    )


def _leaders(
    summaries: Sequence[ArmSummary], dataset: str, target: str
) -> tuple[ArmSummary, list[str]]:
    """Return the best arm and the labels of those whose intervals overlap with its interval."""
    best = best_arm(summaries, dataset, target)
    error = best.errors[dataset][target]
    level = [
        s.contender.label
        for s in summaries
        if s is not best and s.errors[dataset][target].overlaps(error)
    ]
    return best, level


def text_table(summaries: Sequence[ArmSummary]) -> str:
    """Format both tables for a terminal."""
    return "\n\n".join(_text_block(summaries, name) for name in SETS)


def _text_block(summaries: Sequence[ArmSummary], dataset: str) -> str:
    titles = {
        "test": "Held-out test episodes: % of variance unexplained, 95 % interval",
        "extrapolation": "Faster than in training: % of variance unexplained, 95 % interval",
    }
    header = ["arm", "params", "rate", *(target.label for target in TARGETS)]
    rows = [
        [
            s.contender.label,
            f"{s.parameters:,}",
            f"{s.learning_rate:g}{'*' if s.at_edge else ''}",
            *(str(s.errors[dataset][target.name]) for target in TARGETS),
        ]
        for s in summaries
    ]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in [header, *rows]
    ]
    return "\n".join([titles[dataset], lines[0], "-" * len(lines[0]), *lines[1:]])
