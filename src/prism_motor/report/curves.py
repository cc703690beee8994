"""Learning curves: the mean, lowest and highest value over training seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor.arms import arm_colours
from prism_motor.report.charts import Chart, Curve, draw_chart, twin_labels

if TYPE_CHECKING:
    from prism_motor.report.arms import ArmRuns, ReportSection
    from prism_motor.report.collect import RunRecord
    from prism_motor.reporting import Axis, Quantity

_POINTS = 160
"""Number of points per curve."""


@dataclass(frozen=True)
class ChapterCurves:
    """The learning curves of a section."""

    colours: dict[str, str]
    """Colours by label of the arm."""
    twins: set[str]
    """Labels that reuse a colour; their lines are dashed."""
    rows: list[list[Chart]]
    """Charts, one row per axis."""


def make_chapter_curves(section: ReportSection) -> ChapterCurves | None:
    """Draw all quantities of a section's domain; ``None`` without any metrics."""
    colours = _colours([arm for arm in section.arms if arm.runs])
    rows = []
    for axis in section.spec.axes:
        drawn = [
            draw_chart(curves, quantity, axis, colours)
            for quantity in section.spec.curves
            if (curves := make_curves(section, quantity, axis))
        ]
        rows += [drawn] if drawn else []
    if all(len(row) == 1 for row in rows):  # a single quantity: show its axes side by side
        rows = [[chart for row in rows for chart in row]] if rows else []
    return ChapterCurves(colours, twin_labels(colours), rows) if rows else None


def _colours(arms: Sequence[ArmRuns]) -> dict[str, str]:
    """Assign colours to arms; the first arm of a name gets the colour of that name."""
    names = [arm.name for arm in arms]
    keys = [arm.label if arm.name in names[:index] else arm.name for index, arm in enumerate(arms)]
    found = arm_colours(keys)
    return {arm.label: found[key] for arm, key in zip(arms, keys, strict=True)}


def make_curves(section: ReportSection, quantity: Quantity, axis: Axis) -> list[Curve]:
    """Return one curve for the finished seeds of each arm, and one for every unfinished run."""
    curves = []
    for arm in section.arms:
        groups = [[run for run in arm.runs.values() if run.finished]]
        groups += [[run] for run in arm.runs.values() if not run.finished]
        for runs in groups:
            curve = _curve(arm, runs, quantity, axis)
            if curve is not None:
                curves.append(curve)
    return curves


def _curve(arm: ArmRuns, runs: Sequence[RunRecord], quantity: Quantity, axis: Axis) -> Curve | None:
    lines = []
    for run in runs:
        line = _line(run.metrics, quantity, axis)
        if line is not None:
            lines.append((run.config.seed, *line))
    if not lines:
        return None
    # Stop where the shortest seed ends.
    start = max(x[0] for _, x, _ in lines)
    end = min(x[-1] for _, x, _ in lines)
    if end <= start:
        return None
    grid = np.linspace(start, end, _POINTS)
    values = np.stack([np.interp(grid, x, y) for _, x, y in lines])
    return Curve(
        arm.label,
        grid,
        values.mean(0),
        values.min(0),
        values.max(0),
        tuple(seed for seed, _, _ in lines),
        all(run.finished for run in runs),
    )


def _line(
    metrics: Sequence[dict[str, Any]], quantity: Quantity, axis: Axis
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the smoothed curve of one run, with a point every few updates."""
    rows = [(row.get(axis.key), row.get(quantity.key)) for row in metrics]
    points = np.array([row for row in rows if None not in row], dtype=float).reshape(-1, 2)
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 2:
        return None
    # Average neighbours in blocks, so that noise does not hide the trend.
    count = min(len(points), max(2, _POINTS // 2))
    blocks = np.array_split(points, count)
    x = np.array([block[:, 0].mean() for block in blocks]) * axis.factor
    if quantity.of_rates:
        y = np.array([1 / np.mean(1 / np.maximum(block[:, 1], 1e-9)) for block in blocks])
    else:
        y = np.array([block[:, 1].mean() for block in blocks])
    order = np.argsort(x, kind="stable")
    return x[order], y[order]
