"""The numbers of a section: means per training seed, rates, and claims against a reference."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prism_motor.report.arms import ArmRuns, ReportSection
from prism_motor.report.collect import RunRecord
from prism_motor.report.derived import average_conditions, average_tasks, read_baselines
from prism_motor.report.keys import Fixed, Key, Means, Rates
from prism_motor.reporting import MEAN, PLAIN, Execution, Place, ReportSpec
from prism_motor.statistics.claims import Claim, Measure, make_claim, with_holm
from prism_motor.statistics.intervals import Estimate, estimate
from prism_motor.statistics.resampling import iqm_estimate


@dataclass(frozen=True)
class ResultRow:
    """One row of the tables: an arm, executed in one way."""

    label: str
    """Unique label."""
    arm: ArmRuns
    """Its runs."""
    execution: Execution
    """How its policies were executed."""
    reference: str | None
    """Label of the row it is compared with."""


@dataclass(frozen=True)
class SectionResults:
    """All numbers of a section, or of several tasks together."""

    spec: ReportSpec
    """The domain's report settings."""
    title: str
    """Title of the section."""
    reference: str
    """Name of the arm that others are compared with."""
    rows: tuple[ResultRow, ...]
    """Rows of all tables."""
    conditions: tuple[str, ...]
    """Conditions with any evaluation."""
    means: Means
    """Means over episodes by training seed."""
    rates: Rates
    """Successes and episodes by training seed."""
    claims: tuple[Claim, ...]
    """Comparisons under the plain condition."""
    other_claims: tuple[Claim, ...]
    """Comparisons under the other conditions."""
    section: ReportSection | None
    """The runs; ``None`` for the tasks of several sections together."""
    over_conditions: dict[tuple[str, str], Estimate] = field(default_factory=dict)
    """Interquartile mean over seeds and conditions, by label and field, only for rows that were
    evaluated under all conditions."""
    over_tasks: dict[str, Estimate] = field(default_factory=dict)
    """Interquartile mean of the rate over seeds and tasks, by label."""
    parts: tuple[SectionResults, ...] = ()
    """The tasks that it is about, if there are several."""
    place: Place | None = None
    """The task that it is about, if there is only one."""
    fixed: Fixed = field(default_factory=dict)
    """What needs no policy."""

    def estimate(self, key: Key) -> Estimate | None:
        """Return the estimate of a number over training seeds."""
        means = self.means.get(key)
        return estimate(list(means.values())) if means else None

    def rate(self, label: str, condition: str) -> tuple[int, int]:
        """Return successes and episodes of all seeds."""
        return _add(self.rates.get((label, condition), {}).values())


def compute(section: ReportSection, reference: str | None = None) -> SectionResults:
    """Compute all numbers of a section; each task weighs the same if its policies know several.

    Args:
        section: Its arms.
        reference: Name of the arm that others are compared with; default: the domain's.
    """
    places = _places_of(section)
    if len(places) < 2:
        return _compute(section, reference, *places)
    parts = tuple(_compute(section, reference, place) for place in places)
    together = combine(section.title, parts, reference)
    if together is None:  # no row has all tasks
        nothing = {"means": {}, "rates": {}, "claims": (), "other_claims": ()}
        together = replace(parts[0], **nothing, place=None, parts=parts)
    return replace(together, section=section)


def _compute(
    section: ReportSection, reference: str | None, place: Place | None = None
) -> SectionResults:
    """Compute all numbers of the episodes of a section that were about one task."""
    spec = section.spec
    chosen = section.reference(reference)
    rows = _make_rows(section, chosen)
    conditions = _conditions_of(section)
    means: Means = {}
    rates: Rates = {}
    for row in rows:
        for condition in conditions:
            episodes = {
                seed: found
                for seed, run in row.arm.finished.items()
                if (found := _episodes(run, condition, row.execution, place))
            }
            if episodes:
                rates[row.label, condition] = {s: _rate(e, spec) for s, e in episodes.items()}
                means |= _means(row.label, condition, episodes, spec)
    averaged = average_conditions(spec, means, rates)
    fixed = read_baselines(spec, conditions, lambda name: _all_episodes(section, name, place))
    over_conditions = {
        (row.label, field): iqm_estimate(strata)
        for row in rows
        for field in spec.robust
        if spec.iqm_over_conditions
        and len(conditions) > 1
        and (strata := _strata(means, row.label, conditions, field))
    }
    means, rates = means | averaged[0], rates | averaged[1]
    conditions = (*conditions, *((MEAN,) if averaged[0] else ()))
    return SectionResults(
        spec, section.title, chosen, rows, conditions, means, rates,
        *_make_claims(spec, rows, conditions, means),
        section=section, over_conditions=over_conditions, place=place, fixed=fixed,
    )  # fmt: skip


def _all_episodes(
    section: ReportSection, condition: str, place: Place | None
) -> list[list[dict[str, Any]]]:
    """Return the episodes of every finished run."""
    runs = [run for arm in section.arms for run in arm.finished.values()]
    return [_episodes(run, condition, PLAIN, place) for run in runs]


def _episodes(
    run: RunRecord, condition: str, execution: Execution, place: Place | None
) -> list[dict[str, Any]]:
    """Return the episodes of a run that were about a task."""
    found = run.episodes(condition, execution)
    return [row for row in found if place in (None, run.spec.place(run.config, row))]


def _places_of(section: ReportSection) -> list[Place]:
    """Return the tasks of all episodes of a section."""
    found = {
        run.spec.place(run.config, row)
        for arm in section.arms
        for run in arm.finished.values()
        for one in run.evaluations
        for row in one.episodes
    }
    return sorted(found)


def combine(
    title: str, parts: Sequence[SectionResults], reference: str | None = None
) -> SectionResults | None:
    """Average over tasks, for every training seed and row that has all of them.

    What only successful episodes have is averaged over the tasks that a seed solved at all.

    Args:
        title: Title of the combined section.
        parts: Results per task, from the same domain.
        reference: Name of the arm that others are compared with; default: the domain's.

    Returns:
        The numbers, or ``None`` if no row was evaluated on all tasks.
    """
    spec = parts[0].spec
    # Every task counts the same, however many episodes it has.
    means: Means = {}
    for key in dict.fromkeys(key for part in parts for key in part.means):
        whole = [part.means.get(key._replace(solved=False), {}) for part in parts]
        common = set(whole[0]).intersection(*whole)
        values = {
            seed: [found[seed] for part in parts if seed in (found := part.means.get(key, {}))]
            for seed in sorted(common)
        }
        if found := {seed: statistics.fmean(of) for seed, of in values.items() if of}:
            means[key] = found
    plain = {
        row.label: key
        for row in parts[0].rows
        if (key := Key(row.label, spec.plain, spec.rate.field)) in means
    }
    if not plain:
        return None
    # Only the remaining rows can be compared.
    section = parts[0].section
    assert section is not None
    left = [row for row in parts[0].rows if row.label in plain]
    chosen = section.reference(reference, [row.arm for row in left])
    rows = tuple(
        replace(row, reference=_reference_label(section, row.arm, row.execution, chosen))
        for row in left
    )
    means = {key: seeds for key, seeds in means.items() if key.label in plain}
    rates: Rates = {}
    for key, seeds in means.items():
        where = key.label, key.condition
        if key.field == spec.rate.field and not key.solved:
            rates[where] = {seed: _add(part.rates[where][seed] for part in parts) for seed in seeds}
    conditions = tuple(
        name for name in (*spec.conditions, MEAN) if any(key.condition == name for key in means)
    )
    over_tasks = {
        label: iqm_estimate([[part.means[key][seed] for seed in means[key]] for part in parts])
        for label, key in plain.items()
    }
    return SectionResults(
        spec, title, chosen, rows, conditions, means, rates,
        *_make_claims(spec, rows, conditions, means),
        section=None, over_tasks=over_tasks if spec.iqm_over_tasks else {}, parts=tuple(parts),
        fixed=average_tasks([part.fixed for part in parts]),
    )  # fmt: skip


def compute_all(
    sections: Sequence[ReportSection], reference: str | None = None
) -> list[SectionResults]:
    """Compute every section; tasks of a group first together, then one by one."""
    groups: dict[tuple[str, str], list[SectionResults]] = {}
    for section in sections:
        group = section.spec.group(section.runs[0].config)
        # Tasks without a group are not combined.
        key = section.domain.name, group or section.title
        groups.setdefault(key, []).append(compute(section, reference))
    found = []
    for (_, group), parts in groups.items():
        evaluated = [task for part in parts for task in part.parts or (part,) if task.means]
        if len(evaluated) > 1 and len(parts) > 1:
            title = f"All {len(evaluated)} tasks together, {group}"
            together = combine(title, evaluated, reference)
            found += [together] if together else []
        found += parts
    return found


def _make_rows(section: ReportSection, reference: str) -> tuple[ResultRow, ...]:
    """Return one row per arm and execution, plain ones first."""
    found = []
    for place, arm in enumerate(section.arms):
        for execution in arm.executions:
            other = _reference_label(section, arm, execution, reference)
            row = ResultRow(execution.label(arm.label), arm, execution, other)
            found.append(((bool(execution.setting), bool(execution.added), place, execution), row))
    return tuple(row for _, row in sorted(found, key=lambda pair: pair[0]))


def _reference_label(
    section: ReportSection, arm: ArmRuns, execution: Execution, reference: str
) -> str | None:
    """Return the label of the row to compare with, always with the same execution setting.

    A corrected policy is compared with the same policy without correction, other arms with the
    reference.
    """
    base = arm if execution.added else section.reference_of(arm, reference)
    return execution._replace(added="").label(base.label) if base else None


def _conditions_of(section: ReportSection) -> tuple[str, ...]:
    """Return the conditions of all evaluations, in their usual order."""
    found = {one.condition for run in section.runs for one in run.evaluations}
    known = [name for name in section.spec.conditions if name in found]
    return (*known, *sorted(found - {*known}))


def _means(
    label: str,
    condition: str,
    episodes: Mapping[int, Sequence[Mapping[str, Any]]],
    spec: ReportSpec,
) -> Means:
    """Return one number per training seed: the mean over its episodes that have a value."""
    found: Means = {}
    for measure in spec.measures:
        for solved in (False, True) if spec.of_successes else (False,):
            means = {
                seed: statistics.fmean(values)
                for seed, rows in episodes.items()
                if (values := _values(rows, measure, spec.rate.field if solved else None))
            }
            if means:
                found[Key(label, condition, measure.field, solved)] = means
    return found


def _values(
    rows: Sequence[Mapping[str, Any]], measure: Measure, success: str | None
) -> list[float]:
    chosen = [row for row in rows if success is None or row[success]]
    return [value for row in chosen if (value := measure.value(row)) is not None]


def _rate(rows: Sequence[Mapping[str, Any]], spec: ReportSpec) -> tuple[int, int]:
    return sum(bool(row[spec.rate.field]) for row in rows), len(rows)


def _add(rates: Iterable[tuple[int, int]]) -> tuple[int, int]:
    pairs = list(rates)
    return sum(hits for hits, _ in pairs), sum(count for _, count in pairs)


def _strata(
    means: Means, label: str, conditions: Sequence[str], field: str
) -> list[list[float]] | None:
    """Return the values per seed of every condition; empty if a condition is missing."""
    found = [means.get(Key(label, condition, field)) for condition in conditions]
    return None if None in found else [list(seeds.values()) for seeds in found if seeds]


def _make_claims(
    spec: ReportSpec, rows: Sequence[ResultRow], conditions: Sequence[str], means: Means
) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
    """Compare all rows with their reference, under the plain condition and under the others.

    Each table is corrected for its number of claims.
    """
    directed = [measure for measure in spec.measures if measure.higher_is_better is not None]
    robust = [spec.measure(field) for field in spec.robust]
    labels = {row.label for row in rows}
    plain: list[Claim] = []
    others: list[Claim] = []
    for row in rows:
        if row.reference not in labels:
            continue
        assert row.reference is not None
        for condition in dict.fromkeys((spec.plain, *conditions)):
            claims, measures = (plain, directed) if condition == spec.plain else (others, robust)
            for measure in measures:
                ours = means.get(Key(row.label, condition, measure.field), {})
                theirs = means.get(Key(row.reference, condition, measure.field), {})
                if ours or condition == spec.plain:
                    pair = (row.label, ours), (row.reference, theirs)
                    claims.append(make_claim(*pair, condition, measure))
    return with_holm(plain), with_holm(others)
