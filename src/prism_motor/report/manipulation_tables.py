"""Tables of runs that learned from demonstrations: by task, by condition, by suite."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from prism_motor.report.cells import Cell, Chapter, Table, blank
from prism_motor.report.manipulation import ManipulationRun, origins_table
from prism_motor.report.manipulation_results import (
    CLEAN,
    MEASURES,
    SUCCESS,
    Key,
    Study,
    make_studies,
)
from prism_motor.report.measures import Measure
from prism_motor.report.tables import claims_table
from prism_motor.report.words import compared
from prism_motor.statistics import Estimate, estimate, iqm_estimate, wilson

_COLUMNS = (
    (SUCCESS, False),
    *((measure, solved) for measure in MEASURES if measure is not SUCCESS for solved in (0, 1)),
)
"""Columns: measure, and whether only successful episodes count."""


def manipulation_chapters(
    runs: Sequence[ManipulationRun], reference: str | None = None
) -> list[Chapter]:
    """Return what is known of every task, and of all together, and where it came from."""
    chapters = [_chapter(study) for study in make_studies(runs, reference)]
    if len({run.task[0] for run in runs}) > 1:
        table = _suites_table(runs)
        chapters.append(Chapter(table.title, (), (table,)))
    if runs:
        table = origins_table(runs)
        chapters.append(Chapter("Trainings on demonstrations", (), (), (table,)))
    return chapters


def _chapter(study: Study) -> Chapter:
    tables = [_main_table(study)]
    folded = []
    if study.claims:
        made = claims_table(study.claims, "Differences")
        tested = any(claim.adjusted is not None for claim in study.claims)
        (tables if tested else folded).append(made)
    if len(study.conditions) > 1:
        tables.append(_conditions_table(study))
    if study.perturbed:
        folded.append(claims_table(study.perturbed, "Differences under perturbations"))
    return Chapter(study.title, tuple(compared(study.claims)), tuple(tables), tuple(folded))


def _main_table(study: Study) -> Table:
    rows = []
    for label in study.labels:
        cells = [Cell(label, _count(study, label))]
        cells += [_cell(study, Key(label, CLEAN, m.field, bool(s)), m) for m, s in _COLUMNS]
        if study.strata:
            strata = study.strata.get(label)
            cells.append(_estimate(iqm_estimate(strata), SUCCESS) if strata else blank())
        rows.append(tuple(cells))
    headings = [_heading(measure, bool(solved)) for measure, solved in _COLUMNS]
    note = (
        "Mean ± sample SD over training seeds, with the 95 % t interval of the mean; every seed "
        "counts once, by the mean over its episodes. With one seed, or seeds that are all equal, "
        "success has Wilson's interval over episodes instead (star), which speaks of these "
        "policies only. Errors are between the pose that an action commands and the pose that is "
        "reached."
    )
    if study.strata:
        headings.append("success, IQM, %\u00a0↑")
        note += (
            " All tasks weigh the same. IQM: interquartile mean over tasks and seeds with its 95 % "
            "stratified bootstrap interval."
        )
    return Table("Without perturbation", ("arm", *headings), tuple(rows), note)


def _heading(measure: Measure, solved: bool) -> str:
    if not solved:
        return measure.heading
    return measure.heading.replace(measure.title, f"{measure.title} of successes")


def _count(study: Study, label: str) -> str:
    """Say how many trainings and episodes stand behind an arm."""
    seeds = study.scores.get(Key(label, CLEAN, SUCCESS.field), {})
    _, episodes = study.rate(label, CLEAN)
    return f"{len(seeds)} seed{'' if len(seeds) == 1 else 's'}, {episodes} episodes"


def _conditions_table(study: Study) -> Table:
    rows = [
        (
            Cell(label),
            *(_cell(study, Key(label, c, SUCCESS.field), SUCCESS) for c in study.conditions),
        )
        for label in study.labels
    ]
    title = "Success under perturbations, %"
    return Table(title, ("arm", *study.conditions), tuple(rows))


def _suites_table(runs: Sequence[ManipulationRun]) -> Table:
    """Average over the tasks of a suite first, then over training seeds."""
    suites = sorted({run.task[0] for run in runs})
    by_arm: dict[tuple[str, str], dict[str, dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    tasks: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for one in run.evaluations:
            if one.condition != CLEAN or not one.episodes:
                continue
            name = one.execution.label(run.config.arm)
            rate = 100 * statistics.fmean(row["success"] for row in one.episodes)
            by_arm[name, run.config.preset][run.task[0]][run.config.seed].append(rate)
            tasks[run.task[0]].add(run.task[1])
    rows = []
    for (name, preset), found in sorted(by_arm.items()):
        cells = []
        for suite in suites:
            means = [statistics.fmean(rates) for rates in found.get(suite, {}).values()]
            cells.append(_estimate(estimate(means), SUCCESS) if means else blank())
        rows.append((Cell(name, f"preset {preset}"), *cells))
    columns = (f"{suite} ({len(tasks[suite])} tasks)" for suite in suites)
    return Table(
        "Success by suite, %",
        ("arm", *columns),
        tuple(rows),
        "Mean over the tasks that were evaluated, then mean ± SD over training seeds.",
    )


def _cell(study: Study, key: Key, measure: Measure) -> Cell:
    """Return one number over training seeds."""
    seeds = study.scores.get(key)
    if not seeds:
        return blank()
    cell = _estimate(estimate(list(seeds.values())), measure)
    if measure is SUCCESS and not cell.detail:
        successes, count = study.rate(key.arm, key.condition)
        low, high = (100 * bound for bound in wilson(successes, count))
        return Cell(cell.text, f"[{low:.1f},\u00a0{high:.1f}]*", full=f"{successes} of {count}")
    return cell


def _estimate(found: Estimate, measure: Measure) -> Cell:
    text = measure.write(found.centre)
    if found.sd is not None:
        text += f" ± {measure.write(found.sd)}"
    if found.interval is None:
        return Cell(text)
    low, high = found.interval
    if measure is SUCCESS:  # the t interval of a rate knows no bounds
        low, high = max(0.0, low), min(100.0, high)
    return Cell(text, f"[{measure.write(low)},\u00a0{measure.write(high)}]")
