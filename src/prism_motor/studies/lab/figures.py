"""The figures of the laboratory: the map of gain against structure, and errors by size and data."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection
from typing import TYPE_CHECKING

from prism_motor._figures import BLUE, GREY, INK, ORANGE, PALE, new_figure
from prism_motor.arms import SPARE_COLOURS, STYLES
from prism_motor.statistics import t_interval
from prism_motor.studies.lab.arms import REFERENCE
from prism_motor.studies.lab.results import LabRow, LabSummary, Ratio, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from prism_motor.studies.networks import StudyArm

_COLUMNS = 4
"""Panels of the map beside each other."""
_REACH = 8.0
"""The map shows ratios from 1 / _REACH to _REACH; what lies beyond is an arrow at the edge."""

_COLOURS = {"better": BLUE, "worse": ORANGE}


def draw_map(summary: LabSummary, setting: Setting, chosen: Collection[str] = ()) -> Figure:
    """Draw the gain of arms on every problem, most multiplicative problems on top.

    Args:
        summary: The results.
        setting: Size and amount of data.
        chosen: Names of the arms to draw; empty for all.
    """
    arms = [a for a in summary.arms if a != REFERENCE and (not chosen or a.name in chosen)]
    columns = max(1, min(_COLUMNS, len(arms)))
    lines = max(1, math.ceil(len(arms) / columns))
    problems = summary.problems
    figure = new_figure(4.4 + 2.4 * columns, lines * (0.22 * len(problems) + 1.0) + 0.6)
    axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axis, arm in zip(axes.flat, arms, strict=False):
        axis.set_title(arm.label, fontsize=9)
        axis.tick_params(axis="y", length=0)
        axis.tick_params(axis="x", labelbottom=True)
        axis.axvline(1, color=INK, lw=0.8, zorder=1)
        axis.grid(axis="x", color=PALE, lw=0.6, zorder=0)
        for place, problem in enumerate(problems):
            row = summary.row(problem, arm, setting)
            if row is not None:
                _draw_ratio(axis, place, row)
    for axis in list(axes.flat)[len(arms) :]:
        axis.axis("off")
    labels = [
        f"{problem.title}  {summary.structures[problem.name].multiplicativity:.2f}"
        for problem in problems
    ]
    for axis in axes[:, 0]:
        axis.set_yticks(range(len(problems)), labels, fontsize=8)
    axes[0, 0].set_ylim(len(problems) - 0.5, -0.5)
    axes[0, 0].set_xscale("log", base=2)
    axes[0, 0].set_xlim(1 / _REACH, _REACH)
    ticks = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8]
    axes[0, 0].set_xticks(ticks, ["⅛", "¼", "½", "1", "2", "4", "8"])
    figure.supxlabel(
        f"test error relative to the MLP of equal size ({setting}, {len(summary.seeds)} seeds, "
        "95 % intervals)",
        fontsize=9,
    )
    return figure


def _draw_ratio(axis: Axes, place: int, row: LabRow) -> None:
    ratio, outcome = row.ratio("test"), row.outcome("test")
    colour = _COLOURS.get(outcome, GREY)
    if ratio is None:
        axis.annotate("diverged", (1.3, place), va="center", fontsize=7, color=ORANGE)
        return
    if ratio.interval is not None:
        axis.plot(ratio.interval, (place, place), color=colour, lw=1.3, zorder=2)
    if not 1 / _REACH < ratio.centre < _REACH:
        edge, marker = (_REACH, ">") if ratio.centre > 1 else (1 / _REACH, "<")
        axis.plot(edge, place, marker, ms=6, color=colour, clip_on=False, zorder=3)
        return
    fill = colour if outcome in _COLOURS else "white"
    axis.plot(ratio.centre, place, "o", ms=4.5, color=colour, mfc=fill, mew=1.2, zorder=3)


def draw_axis(summary: LabSummary, axis_name: str) -> Figure:
    """Draw the mean error of the arms against the size of networks or the amount of data.

    Args:
        summary: The results.
        axis_name: ``size`` or ``samples``; one line per arm and value of the other.
    """
    other = "samples" if axis_name == "size" else "size"
    figure = new_figure(8.2, 4.2)
    axis = figure.subplots()
    for number, arm in enumerate(summary.arms):
        style = STYLES.get(arm.name)
        colour = style.colour if style else SPARE_COLOURS[number % len(SPARE_COLOURS)]
        for value in sorted({getattr(setting, other) for setting in summary.settings}):
            chosen = [s for s in summary.settings if getattr(s, other) == value]
            points = [(getattr(s, axis_name), _mean_error(summary, arm, s)) for s in chosen]
            shown = [(x, found) for x, found in points if found is not None]
            if not shown:
                continue
            label = arm.label
            if len(summary.settings) > len(chosen):
                label += f", {value:,} {'samples' if other == 'samples' else 'parameters'}"
            centres = [found.centre for _, found in shown]
            axis.plot([x for x, _ in shown], centres, "o-", ms=4, color=colour, label=label)
            for x, found in shown:
                if found.interval is not None:
                    axis.plot((x, x), found.interval, color=colour, lw=1.2)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("parameters" if axis_name == "size" else "training samples")
    ticks = sorted({getattr(setting, axis_name) for setting in summary.settings})
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    for formatted in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
        formatted(lambda value, _: f"{value:g}")
    axis.set_ylabel("unexplained, %, mean over problems")
    axis.grid(color=PALE, lw=0.6, which="both")
    axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _mean_error(summary: LabSummary, arm: StudyArm, setting: Setting) -> Ratio | None:
    """Return the geometric mean in percent over the problems that all arms and settings have."""
    by_problem: list[dict[int, float]] = []
    for problem in summary.problems:
        rows = [summary.row(problem, one, s) for one in summary.arms for s in summary.settings]
        if any(row is None or row.estimate("test") is None for row in rows):
            continue
        row = summary.row(problem, arm, setting)
        if row is not None:
            errors = row.errors["test"]
            by_problem.append({k: math.log(100 * v) for k, v in errors.items() if v is not None})
    if not by_problem:
        return None
    means = [statistics.fmean(one[seed] for one in by_problem) for seed in summary.seeds]
    return Ratio.of(statistics.fmean(means), t_interval(means))
