"""Results by task, where one policy does several: tasks in rows, arms in columns."""

from __future__ import annotations

from typing import Any

from prism_motor.report.keys import Key
from prism_motor.report.results import SectionResults
from prism_motor.report.tables import Cell, Table, companion_text, number, write_fixed


def by_task_table(results: SectionResults) -> Table | None:
    """Return the measure that a domain shows by task, with its companion in every cell."""
    spec = results.spec
    if not spec.by_task or not results.parts:
        return None
    measure, titles = spec.measure(spec.by_task), [one.title for one in spec.baselines]
    rows = []
    for part in [*results.parts, results]:
        arms = [number(part, Key(row.label, spec.plain, measure.field)) for row in results.rows]
        others = [write_fixed(part, Key(name, spec.plain, measure.field)) for name in titles]
        rows.append((Cell(part.place.task if part.place else "mean"), *arms, *others))
    return Table(
        f"{measure.title} by {spec.task_word}, {spec.plain}",
        (spec.task_word, *(row.label for row in results.rows), *titles),
        tuple(rows),
        f"{measure.heading}{companion_text(spec, measure)}. Mean ± SD over training seeds; every "
        f"{spec.task_word} weighs the same in the mean.",
    )


def by_task_json(results: SectionResults) -> dict[str, Any]:
    """Return all measures by task, condition and row, by training seed."""
    found: dict[str, Any] = {}
    for part in results.parts if results.spec.by_task else ():
        assert part.place is not None
        of_task = found.setdefault(part.place.task, {})
        for key, seeds in part.means.items():
            row = of_task.setdefault(key.condition, {}).setdefault(key.label, {})
            row[key.field] = {str(seed): value for seed, value in seeds.items()}
        for key, value in part.fixed.items():
            row = of_task.setdefault(key.condition, {}).setdefault(key.label, {})
            row[key.field] = value
    return found
