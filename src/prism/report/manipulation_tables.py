"""Tables of runs that learned from demonstrations: by task, by condition, by suite."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from prism.manipulation.perturbations import PERTURBATIONS
from prism.report.cells import Cell, Table, blank
from prism.report.manipulation import ManipulationRun
from prism.statistics import estimate, wilson

CLEAN = "none"
"""Condition of the main table."""

_COLUMNS = (
    ("success", "success, %\u00a0↑", 100.0, 1, False),
    ("smoothness", "smoothness\u00a0↓", 1.0, 4, False),
    ("smoothness", "smoothness of successes\u00a0↓", 1.0, 4, True),
    ("position_error", "position error, mm\u00a0↓", 1000.0, 1, False),
    ("position_error", "position error of successes, mm\u00a0↓", 1000.0, 1, True),
    ("orientation_error", "orientation error, rad\u00a0↓", 1.0, 4, False),
    ("orientation_error", "orientation error of successes, rad\u00a0↓", 1.0, 4, True),
)
"""Columns: field of an episode, heading, factor, digits, whether only successful ones count."""


def manipulation_tables(runs: Sequence[ManipulationRun]) -> list[Table]:
    """Return the tables of every task, then the breakdown by suite if there are several tasks."""
    tables = []
    for task in sorted({run.task for run in runs}):
        arms = _arms(run for run in runs if run.task == task)
        suite, name, preset = task
        title = f"{suite} {name}, preset {preset}"
        tables.append(_main_table(title, arms))
        conditions = [
            condition
            for condition in PERTURBATIONS
            if any(condition in by_condition for by_condition in arms.values())
        ]
        if len(conditions) > 1:
            tables.append(_conditions_table(title, arms, conditions))
    if len({run.task[:2] for run in runs}) > 1:
        tables.append(_suites_table(runs))
    return tables


Arms = dict[str, dict[str, dict[int, list[dict[str, Any]]]]]
"""Episodes by arm, condition and training seed; an arm with a corrector is an arm of its own."""


def _arms(runs: Iterable[ManipulationRun]) -> Arms:
    found: Arms = defaultdict(lambda: defaultdict(dict))
    for run in runs:
        for (condition, corrector), rows in run.episodes.items():
            name = run.config.arm + ("" if corrector == "none" else f" + {corrector}")
            found[name][condition][run.config.seed] = rows
    return {name: dict(found[name]) for name in sorted(found)}


def _main_table(title: str, arms: Arms) -> Table:
    rows = []
    for name, conditions in arms.items():
        seeds = conditions.get(CLEAN, {})
        episodes = sum(len(found) for found in seeds.values())
        count = f"{len(seeds)} seed{'' if len(seeds) == 1 else 's'}, {episodes} episodes"
        cells = [_cell(seeds, field, factor, digits, solved)
                 for field, _, factor, digits, solved in _COLUMNS]  # fmt: skip
        rows.append((Cell(name, count), *cells))
    return Table(
        title,
        ("arm", *(heading for _, heading, *_ in _COLUMNS)),
        tuple(rows),
        "Mean ± sample SD over training seeds, with the 95 % t interval of the mean; every seed "
        "counts once, by the mean over its episodes. With one seed, or seeds that are all equal, "
        "success has Wilson's interval over episodes instead (star), which speaks of these "
        "policies only. Errors are between the pose that an action commands and the pose that is "
        "reached.",
    )


def _conditions_table(title: str, arms: Arms, conditions: Sequence[str]) -> Table:
    rows = [
        (Cell(name), *(_cell(found.get(condition, {}), *_SUCCESS) for condition in conditions))
        for name, found in arms.items()
    ]
    return Table(f"{title}: success under perturbations, %", ("arm", *conditions), tuple(rows))


def _suites_table(runs: Sequence[ManipulationRun]) -> Table:
    """Average over the tasks of a suite first, then over training seeds."""
    suites = sorted({run.task[0] for run in runs})
    by_arm: dict[tuple[str, str], dict[str, dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    tasks: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for (condition, corrector), rows in run.episodes.items():
            if condition != CLEAN or not rows:
                continue
            name = run.config.arm + ("" if corrector == "none" else f" + {corrector}")
            rate = 100 * statistics.fmean(row["success"] for row in rows)
            by_arm[name, run.config.preset][run.task[0]][run.config.seed].append(rate)
            tasks[run.task[0]].add(run.task[1])
    rows = []
    for (name, preset), found in sorted(by_arm.items()):
        cells = []
        for suite in suites:
            means = [statistics.fmean(rates) for rates in found.get(suite, {}).values()]
            cells.append(_over_seeds(means, 1, 100.0) if means else blank())
        rows.append((Cell(name, f"preset {preset}"), *cells))
    columns = (f"{suite} ({len(tasks[suite])} tasks)" for suite in suites)
    return Table(
        "Success by suite, %",
        ("arm", *columns),
        tuple(rows),
        "Mean over the tasks that were evaluated, then mean ± SD over training seeds.",
    )


_SUCCESS = ("success", 100.0, 1, False)


def _cell(
    seeds: dict[int, list[dict[str, Any]]], field: str, factor: float, digits: int, solved: bool
) -> Cell:
    """Return one number over training seeds."""
    chosen = {
        seed: [row for row in rows if row["success"] or not solved] for seed, rows in seeds.items()
    }
    means = [
        factor * statistics.fmean(float(row[field]) for row in rows)
        for rows in chosen.values()
        if rows
    ]
    if not means:
        return blank()
    cell = _over_seeds(means, digits, 100.0 if field == "success" else None)
    if field == "success" and not cell.detail:
        rows = [row for found in seeds.values() for row in found]
        successes = sum(row["success"] for row in rows)
        low, high = (100 * bound for bound in wilson(successes, len(rows)))
        return Cell(cell.text, f"[{low:.1f},\u00a0{high:.1f}]*", full=f"{successes} of {len(rows)}")
    return cell


def _over_seeds(means: Sequence[float], digits: int, highest: float | None = None) -> Cell:
    found = estimate(means)
    text = f"{found.centre:.{digits}f}"
    if found.sd is not None:
        text += f" ± {found.sd:.{digits}f}"
    if found.interval is None:
        return Cell(text)
    low, high = found.interval
    if highest is not None:  # the t interval of a rate knows no bounds
        low, high = max(0.0, low), min(highest, high)
    return Cell(text, f"[{low:.{digits}f},\u00a0{high:.{digits}f}]".replace("-", "−"))
