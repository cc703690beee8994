"""Numbers of runs that learned from demonstrations: a study a task, and one of all tasks."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from prism_motor.manipulation.rollout import PERTURBATIONS
from prism_motor.report.claims import Claim, make_claim, with_holm
from prism_motor.report.manipulation import Execution, ManipulationRun
from prism_motor.report.measures import Measure

CLEAN = "none"
"""Condition of the main table."""

REFERENCES = ("mlp", "mlp-larger", "linear")
"""Arms to compare with, unless told otherwise: the plain network of equal size, else the one that
is larger, else LeRobot's."""

SUCCESS = Measure("success", "success", "%", 1, 1, 100.0)
"""The measure that counts under every condition."""

MEASURES = (
    SUCCESS,
    Measure("smoothness", "smoothness", "", 4, -1),
    Measure("position_error", "position error", "mm", 1, -1, 1000.0),
    Measure("orientation_error", "orientation error", "rad", 4, -1),
)
"""What is measured about an episode."""


class Key(NamedTuple):
    """Names a number of a study."""

    arm: str
    """Label of the arm with how it was run."""
    condition: str
    """Name of the perturbation."""
    field: str
    """Field of the measure."""
    solved: bool = False
    """Whether only successful episodes count."""


Scores = dict[Key, dict[int, float]]
"""Means over episodes by training seed."""

Rates = dict[tuple[str, str], dict[int, tuple[int, int]]]
"""Successes and episodes by training seed, by label and condition."""

Episodes = Mapping[str, Mapping[str, Mapping[int, Sequence[dict[str, Any]]]]]
"""Episodes by label, condition and training seed."""


@dataclass(frozen=True)
class Study:
    """Arms that were trained and evaluated on the same."""

    title: str
    """What on."""
    labels: tuple[str, ...]
    """Arms, each with how it was run."""
    conditions: tuple[str, ...]
    """Perturbations with any evaluation."""
    scores: Scores
    """Means over episodes by training seed; what is missing is not there."""
    rates: Rates
    """Successes and episodes of those seeds."""
    claims: tuple[Claim, ...]
    """Comparisons without perturbation."""
    perturbed: tuple[Claim, ...]
    """Comparisons of success under perturbations."""
    strata: Mapping[str, Sequence[Sequence[float]]]
    """Success by task and training seed, by label; empty for a single task."""

    def rate(self, label: str, condition: str) -> tuple[int, int]:
        """Return successes and episodes of all seeds."""
        return _add(self.rates.get((label, condition), {0: (0, 0)}).values())


def make_studies(runs: Iterable[ManipulationRun], reference: str | None = None) -> list[Study]:
    """Return all tasks of a preset together where there are several, then every task.

    Args:
        runs: What was trained.
        reference: Arm to compare with; default: the first of :data:`REFERENCES` that there is.
    """
    found: list[Study] = []
    by_preset: dict[str, dict[tuple[str, str], list[ManipulationRun]]] = defaultdict(dict)
    for run in runs:
        if run.evaluations:
            suite, name, preset = run.task
            by_preset[preset].setdefault((suite, name), []).append(run)
    for preset, tasks in sorted(by_preset.items()):
        studies = []
        for (suite, name), group in sorted(tasks.items()):
            studies.append(_study(f"{suite} {name}, preset {preset}", group, reference))
        if len(studies) > 1:
            everything = [run for group in tasks.values() for run in group]
            title = f"All {len(studies)} tasks together, preset {preset}"
            found += _together(title, studies, _pairs(everything, reference))
        found += studies
    return found


def _study(title: str, runs: Sequence[ManipulationRun], reference: str | None) -> Study:
    episodes: dict[str, dict[str, dict[int, list[dict[str, Any]]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for run in runs:
        for one in run.evaluations:
            label = one.execution.label(run.config.arm)
            episodes[label][one.condition][run.config.seed] += one.episodes
    rates = {
        (label, condition): {seed: _rate(rows) for seed, rows in seeds.items()}
        for label, conditions in episodes.items()
        for condition, seeds in conditions.items()
    }
    pairs = _pairs(runs, reference)
    return _finish(title, _scores(episodes), rates, pairs, {})


def _together(title: str, studies: Sequence[Study], pairs: Mapping[str, str]) -> list[Study]:
    """Average over tasks first: for every training seed that has all of them."""
    scores: Scores = {}
    for key in studies[0].scores:
        seeds = [study.scores.get(key, {}) for study in studies]
        common = set(seeds[0]).intersection(*seeds)
        if common:
            scores[key] = {s: statistics.fmean(one[s] for one in seeds) for s in sorted(common)}
    labels = sorted({key.arm for key in scores if key.condition == CLEAN})
    if not labels:
        return []
    strata = {}
    for label in labels:
        key = Key(label, CLEAN, SUCCESS.field)
        strata[label] = [[study.scores[key][seed] for seed in scores[key]] for study in studies]
    rates: Rates = {}
    for key, seeds in scores.items():
        where = key.arm, key.condition
        if key.field == SUCCESS.field and not key.solved:
            rates[where] = {seed: _add(s.rates[where][seed] for s in studies) for seed in seeds}
    return [_finish(title, scores, rates, pairs, strata)]


def _finish(
    title: str,
    scores: Scores,
    rates: Rates,
    pairs: Mapping[str, str],
    strata: Mapping[str, Sequence[Sequence[float]]],
) -> Study:
    conditions = tuple(c for c in PERTURBATIONS if any(key.condition == c for key in scores))
    others = [condition for condition in conditions if condition != CLEAN]
    return Study(
        title=title,
        labels=tuple(sorted({key.arm for key in scores}, key=_order)),
        conditions=conditions,
        scores=scores,
        rates=rates,
        claims=_claims(scores, pairs, [CLEAN], MEASURES),
        perturbed=_claims(scores, pairs, others, [SUCCESS]),
        strata=strata,
    )


def _order(label: str) -> tuple[bool, bool, str]:
    """Sort plain arms first, then those with another stiffness, each before its correctors."""
    return ", Kp " in label, " + " in label, label


def _scores(episodes: Episodes) -> Scores:
    found: Scores = {}
    for label, conditions in episodes.items():
        for condition, seeds in conditions.items():
            for measure in MEASURES:
                for solved in (False, True):
                    means = {
                        seed: statistics.fmean(
                            measure.factor * float(r[measure.field]) for r in own
                        )
                        for seed, rows in sorted(seeds.items())
                        if (own := [row for row in rows if row["success"] or not solved])
                    }
                    if means:
                        found[Key(label, condition, measure.field, solved)] = means
    return found


def _rate(rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    return sum(bool(row["success"]) for row in rows), len(rows)


def _add(rates: Iterable[tuple[int, int]]) -> tuple[int, int]:
    successes, counts = zip(*rates, strict=True)
    return sum(successes), sum(counts)


def _pairs(runs: Sequence[ManipulationRun], reference: str | None) -> dict[str, str]:
    """Return what each label is compared with, at the same stiffness.

    A corrector is compared with the same policies without it, other arms with the reference.
    """
    arms = {run.config.arm for run in runs}
    wanted = [reference] if reference in arms else [name for name in REFERENCES if name in arms]
    if not wanted or wanted[0] is None:
        return {}
    pairs = {}
    for run in runs:
        for one in run.evaluations:
            label = one.execution.label(run.config.arm)
            plain = one.execution.corrector == "none"
            arm = wanted[0] if plain else run.config.arm
            other = Execution("none", one.execution.stiffness).label(arm)
            if label != other:
                pairs[label] = other
    return pairs


def _claims(
    scores: Scores, pairs: Mapping[str, str], conditions: Sequence[str], fields: Sequence[Measure]
) -> tuple[Claim, ...]:
    claims = []
    for label, other in sorted(pairs.items(), key=lambda pair: _order(pair[0])):
        for condition in conditions:
            for measure in fields:
                ours = scores.get(Key(label, condition, measure.field), {})
                theirs = scores.get(Key(other, condition, measure.field), {})
                if ours or condition == CLEAN:
                    claims.append(make_claim((label, ours), (other, theirs), condition, measure))
    return with_holm(claims)
