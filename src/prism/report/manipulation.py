"""Runs that learned from demonstrations: read, grouped by task and arm, and put into tables."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism.imitate.config import KIND, ImitationConfig
from prism.imitate.evaluations import SCHEMA
from prism.manipulation.perturbations import PERTURBATIONS
from prism.report.cells import Cell, Table, blank
from prism.runs import Run, from_dict, to_dict
from prism.runs.configs import find_differences
from prism.statistics import estimate, wilson

CLEAN = "none"
"""Condition of the main table."""

_FREE = ("seed", "threads", "device", "demos", "log_every", "checkpoint_every", "keep_checkpoints")
"""Settings in which runs of one arm may differ."""

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


@dataclass(frozen=True)
class ManipulationRun:
    """One training on demonstrations with its evaluations."""

    name: str
    """The folder as seen from where the report began."""
    config: ImitationConfig
    """How it was trained."""
    episodes: dict[tuple[str, str], list[dict[str, Any]]]
    """Episodes by condition and corrector, all of the newest checkpoint."""

    @property
    def task(self) -> tuple[str, str, str]:
        """Suite, task and preset: what is never mixed."""
        return self.config.task.suite, self.config.task.name, self.config.preset


def collect_manipulation(root: Path) -> tuple[list[ManipulationRun], list[str]]:
    """Read all such runs under a folder, with what was left out and why."""
    found: list[ManipulationRun] = []
    notes: list[str] = []
    for file in sorted(root.rglob("config.json")):
        folder = file.parent
        if any(part.startswith(".") for part in folder.relative_to(root).parts):
            continue
        try:
            data = json.loads(file.read_text())
        except (OSError, ValueError):
            continue
        if not isinstance(data, dict) or data.get("kind") != KIND:
            continue
        name = folder.relative_to(root).as_posix()
        try:
            config = from_dict(ImitationConfig, data, where=f"{name}/config.json")
        except (ValueError, TypeError) as error:
            notes.append(f"{name}: this version of prism cannot read the run: {error}")
            continue
        episodes = _episodes(folder, config, name, notes)
        found.append(ManipulationRun(name, config, episodes))
    return found, notes + _mixtures(found)


def _episodes(
    folder: Path, config: ImitationConfig, name: str, notes: list[str]
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Read the evaluations of a run's last checkpoint."""
    steps = Run(folder, {}).steps()
    if steps and steps[-1] < config.steps:
        notes.append(f"{name}: {steps[-1]} of {config.steps} updates are done; it is left out.")
        return {}
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for file in sorted((folder / "evaluations").glob("*.json")):
        try:
            data = json.loads(file.read_text())
            if data["schema"] != SCHEMA:
                raise ValueError(f"schema {data['schema']}, this prism reads {SCHEMA}")
            if data["checkpoint"] != config.steps:
                raise ValueError(f"it is of update {data['checkpoint']}")
            key = data["condition"]["name"], data["protocol"]["corrector"]
            found[key] += data["episodes"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            notes.append(f"{name}/evaluations/{file.name} is left out: {error}.")
    if not found:
        notes.append(f"{name}: not evaluated yet (prism eval).")
    return dict(found)


def _mixtures(runs: Sequence[ManipulationRun]) -> list[str]:
    """Name arms whose runs differ in more than the seed."""
    notes = []
    first: dict[tuple[str, ...], ManipulationRun] = {}
    for run in runs:
        other = first.setdefault((*run.task, run.config.arm), run)
        changes = find_differences(to_dict(other.config), to_dict(run.config))
        keys = [key for key in changes if key not in _FREE]
        if keys:
            notes.append(
                f"{run.name} and {other.name} are both called {run.config.arm} but differ in "
                f"{', '.join(keys)}; give one another name by --arm."
            )
    return notes


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
            cells.append(_over_seeds(means, 1) if means else blank())
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
    cell = _over_seeds(means, digits)
    if field == "success" and not cell.detail:
        rows = [row for found in seeds.values() for row in found]
        successes = sum(row["success"] for row in rows)
        low, high = (100 * bound for bound in wilson(successes, len(rows)))
        return Cell(cell.text, f"[{low:.1f},\u00a0{high:.1f}]*", full=f"{successes} of {len(rows)}")
    return cell


def _over_seeds(means: Sequence[float], digits: int) -> Cell:
    found = estimate(means)
    text = f"{found.centre:.{digits}f}"
    if found.sd is not None:
        text += f" ± {found.sd:.{digits}f}"
    if found.interval is None:
        return Cell(text)
    low, high = found.interval
    return Cell(text, f"[{low:.{digits}f},\u00a0{high:.{digits}f}]".replace("-", "−"))


def manipulation_data(runs: Sequence[ManipulationRun]) -> list[dict[str, Any]]:
    """Return all episodes with the runs that they are of."""
    return [
        {
            "folder": run.name,
            "config": to_dict(run.config),
            "evaluations": [
                {"condition": condition, "corrector": corrector, "episodes": rows}
                for (condition, corrector), rows in run.episodes.items()
            ],
        }
        for run in runs
    ]
