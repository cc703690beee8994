"""Learning curves: the mean over training seeds with the lowest and highest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prism_motor.report.arms import Arm, Section
from prism_motor.report.records import RunRecord

_POINTS = 160
"""Points of a curve."""


@dataclass(frozen=True)
class Quantity:
    """Something that training logs."""

    key: str
    """Name in metrics.jsonl."""
    title: str
    """What it is called."""
    unit: str
    """Unit."""
    log_scale: bool = False
    """Whether factors matter more than differences."""
    of_rates: bool = False
    """Whether neighbours are averaged by their inverse: times between events add up as rates."""


QUANTITIES = (
    Quantity("reward_per_second", "reward per second", "1/s"),
    Quantity("linear_error", "linear error", "m/s"),
    Quantity("seconds_between_falls", "time between falls", "s", log_scale=True, of_rates=True),
)
"""What is drawn."""


@dataclass(frozen=True)
class Axis:
    """What a curve is drawn over."""

    key: str
    """Name in metrics.jsonl."""
    title: str
    """What it is called."""
    factor: float
    """From the record to the picture."""


AXES = (Axis("samples", "million samples", 1e-6), Axis("seconds", "minutes of training", 1 / 60))
"""Costs of learning: experience and time."""


@dataclass(frozen=True)
class Curve:
    """One line of a picture."""

    arm: Arm
    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: tuple[int, ...]
    finished: bool
    """Whether it is of finished trainings."""


def make_curves(section: Section, quantity: Quantity, axis: Axis) -> list[Curve]:
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


def _curve(arm: Arm, runs: Sequence[RunRecord], quantity: Quantity, axis: Axis) -> Curve | None:
    lines = []
    for run in runs:
        line = _line(run.metrics, quantity, axis)
        if line is not None:
            lines.append((run.config.seed, *line))
    if not lines:
        return None
    # As far as every seed has got.
    start = max(x[0] for _, x, _ in lines)
    end = min(x[-1] for _, x, _ in lines)
    if end <= start:
        return None
    grid = np.linspace(start, end, _POINTS)
    values = np.stack([np.interp(grid, x, y) for _, x, y in lines])
    return Curve(
        arm,
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
    """Return the smooth curve of one run, a point for every few updates."""
    rows = [(row.get(axis.key), row.get(quantity.key)) for row in metrics]
    points = np.array([row for row in rows if None not in row], dtype=float).reshape(-1, 2)
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 2:
        return None
    # Neighbours are averaged in blocks, so that single updates do not hide the trend.
    count = min(len(points), max(2, _POINTS // 2))
    blocks = np.array_split(points, count)
    x = np.array([block[:, 0].mean() for block in blocks]) * axis.factor
    if quantity.of_rates:
        y = np.array([1 / np.mean(1 / np.maximum(block[:, 1], 1e-9)) for block in blocks])
    else:
        y = np.array([block[:, 1].mean() for block in blocks])
    order = np.argsort(x, kind="stable")
    return x[order], y[order]
