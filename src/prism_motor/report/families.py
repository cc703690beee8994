"""Results by family of tasks, such as a suite: whether one policy or forty made the episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from prism_motor._console import count
from prism_motor.arms import arm_order
from prism_motor.report.keys import Key
from prism_motor.report.results import ResultRow, SectionResults, combine
from prism_motor.report.tables import Cell, Table, blank, claims_table, write_estimate
from prism_motor.reporting import Place, ReportSpec
from prism_motor.statistics.claims import with_holm


@dataclass(frozen=True)
class TaskFamilies:
    """The tasks of one group of runs, sorted into families."""

    group: str
    """Title of the group; may be empty."""
    tasks: tuple[SectionResults, ...]
    """Results per task."""
    together: SectionResults | None
    """Results of all tasks together; ``None`` if no row has all of them."""

    @property
    def spec(self) -> ReportSpec:
        """The domain's report settings."""
        return self.tasks[0].spec

    @property
    def title(self) -> str:
        """Title of its chapter."""
        return f"{self.spec.rate.title.capitalize()} by suite, {self.group}".removesuffix(", ")

    @property
    def labels(self) -> list[str]:
        """Labels of all rows, in the order of tables."""
        rows = {row.label: row for task in self.tasks for row in task.rows}
        return sorted(rows, key=lambda label: _order(rows[label]))

    @cached_property
    def families(self) -> dict[str, list[SectionResults]]:
        """Tasks by family, in the order of tables."""
        known = list(self.spec.families)
        names = {_place(task).family for task in self.tasks}
        ordered = sorted(
            names, key=lambda name: (known.index(name) if name in known else len(known), name)
        )
        return {name: [t for t in self.tasks if _place(t).family == name] for name in ordered}

    @cached_property
    def means(self) -> dict[str, SectionResults | None]:
        """Every family's tasks together; ``None`` if no row has all of them."""
        return {
            name: combine(self.family_title(name), tasks, self.tasks[0].reference)
            for name, tasks in self.families.items()
        }

    def family_title(self, name: str) -> str:
        """Return the title of a family."""
        return self.spec.families.get(name, name)


def find_families(all_results: Sequence[SectionResults]) -> dict[int, TaskFamilies]:
    """Return what is worth a chapter, by the place in the list that the chapter comes before.

    A group of runs has one if its tasks are of several families, or if one policy does several.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for index, results in enumerate(all_results):
        if results.section is not None and results.section.runs:
            group = results.spec.group(results.section.runs[0].config)
            groups.setdefault((results.spec.domain.name, group), []).append(index)
    found = {}
    for (_, group), members in groups.items():
        sections = [all_results[index] for index in members]
        tasks = tuple(t for one in sections for t in one.parts or (one,) if t.means and t.place)
        names = {_place(task).family for task in tasks}
        if (len(names) > 1 or any(one.parts for one in sections)) and "" not in names:
            together = next((one for one in all_results if one.parts == tasks and one.means), None)
            found[members[0]] = TaskFamilies(group, tasks, together)
    return found


def families_table(found: TaskFamilies) -> Table:
    """Return the rate by family and over all tasks, one row per arm."""
    spec = found.spec
    rows = []
    for label in found.labels:
        cells = [_cell(found.means[name], tasks, label) for name, tasks in found.families.items()]
        rows.append((Cell(label), *cells, _cell(found.together, found.tasks, label)))
    sizes = [
        f"{found.family_title(name)} ({count(len(tasks), 'task')})"
        for name, tasks in found.families.items()
    ]
    return Table(
        f"{spec.rate.title.capitalize()} by suite, {spec.rate.unit}",
        ("arm", *sizes, f"all ({count(len(found.tasks), 'task')})"),
        tuple(rows),
        "For every training seed the mean over the tasks of a suite, and over all tasks, each with "
        "the same weight; then mean ± SD over training seeds with the 95 % t interval, or with "
        "Wilson's over episodes (star).",
    )


def families_claims(found: TaskFamilies) -> Table | None:
    """Return the comparisons of the rate by family, corrected for all of them together."""
    rate = found.spec.rate
    claims = [
        replace(claim, condition=found.family_title(name))
        for name, results in found.means.items()
        for claim in (() if results is None else results.claims)
        if claim.measure is rate
    ]
    if not any(claim.comparison and len(claim.comparison.seeds) > 1 for claim in claims):
        return None
    ordered = [claim for label in found.labels for claim in claims if claim.arm == label]
    return claims_table(with_holm(ordered), "Differences by suite", folded=True, column="suite")


def tasks_table(found: TaskFamilies) -> Table:
    """Return the rate by task, one column per arm."""
    rate = found.spec.rate
    rows = []
    for name, tasks in found.families.items():
        for task in tasks:
            cells = [_cell(task, (task,), label) for label in found.labels]
            rows.append((Cell(_place(task).task, found.family_title(name)), *cells))
    return Table(
        f"{rate.title.capitalize()} by task, {rate.unit}",
        ("task", *found.labels),
        tuple(rows),
        "Mean ± SD over training seeds.",
        folded=True,
    )


def _cell(results: SectionResults | None, tasks: Sequence[SectionResults], label: str) -> Cell:
    """Return a rate, or how many tasks there are if some are missing."""
    spec = tasks[0].spec
    key = Key(label, spec.plain, spec.rate.field)
    value = None if results is None else results.estimate(key)
    if results is None or value is None:
        there = sum(key in task.means for task in tasks)
        return replace(blank(), detail=f"{there} of {count(len(tasks), 'task')}" if there else "")
    return write_estimate(value, spec.rate, True, results.rate(label, spec.plain))


def _order(row: ResultRow) -> tuple[Any, ...]:
    execution = row.execution
    order = bool(execution.setting), bool(execution.added), *arm_order(row.arm.name)
    return (*order, execution, row.label)


def _place(task: SectionResults) -> Place:
    assert task.place is not None
    return task.place
