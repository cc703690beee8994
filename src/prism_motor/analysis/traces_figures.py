"""Figures of traces: commanded and actual velocities, and the mechanics of a few steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from prism_motor._figures import INK, PALE, new_figure
from prism_motor.analysis.subjects import by_arm
from prism_motor.arms import arm_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from prism_motor.analysis.traces import PolicyTrace

VELOCITIES = {
    "command_forward": "velocity_forward",
    "command_sideways": "velocity_sideways",
    "command_yaw": "yaw_rate",
}
"""Commands with the quantities that should follow them."""

_MARGIN = 0.3
"""Margin around the commands; fallen robots may leave the figure, m/s or rad/s."""

_TITLES = ("forward, m/s", "sideways, m/s", "yaw rate, rad/s")


def draw_tracking(traces: Sequence[PolicyTrace]) -> Figure:
    """Draw commanded and actual velocities along the script."""
    arms = by_arm(traces)
    colours = arm_colours(arms)
    figure = new_figure(10.5, 6.6)
    axes = figure.subplots(3, 1, sharex=True)
    told = traces[0]
    for column, (axis, name) in enumerate(zip(axes, VELOCITIES.values(), strict=True)):
        label = "command" if column == 0 else None
        axis.step(told.time, told.commands[:, column], where="post", color=INK, lw=1.4, label=label)
        # Robots start at rest, whatever they are told.
        lowest, highest = min(0.0, *told.commands[:, column]), max(0.0, *told.commands[:, column])
        axis.set_ylim(lowest - _MARGIN, highest + _MARGIN)
        for arm, group in arms.items():
            _line(axis, group, name, colours[arm], arm if column == 0 else None)
        axis.set_ylabel(_TITLES[column])
        axis.grid(color=PALE, lw=0.8)
    axes[-1].set_xlabel("time, s")
    axes[-1].set_xlim(0, told.time[-1])
    bands = "10 to 90 % of the robots"
    if any(len(group) > 1 for group in arms.values()):
        bands = f"range over training seeds, or {bands} where there is one seed"
    figure.suptitle(
        f"The same commands for every arm   (mean over the past gait cycle; bands: {bands})",
        fontsize=11,
    )
    figure.legend(loc="outside lower center", ncols=min(7, len(arms) + 1), frameon=False)
    return figure


def _line(
    axis: Axes, group: Sequence[PolicyTrace], name: str, colour: str, label: str | None
) -> None:
    """Draw the mean over robots and its band; a cross marks where the last robot fell."""
    time = group[0].time
    if len(group) > 1:
        lines = np.stack([_over_robots(trace.smooth(name)) for trace in group])
        low, high = lines.min(0), lines.max(0)
        centre = lines.mean(0)
    else:
        values = group[0].smooth(name)
        centre = _over_robots(values)
        alive = np.isfinite(centre)
        low, high = np.full_like(centre, np.nan), np.full_like(centre, np.nan)
        low[alive], high[alive] = np.nanquantile(values[:, alive], [0.1, 0.9], axis=0)
    axis.fill_between(time, low, high, color=colour, alpha=0.18, lw=0)
    axis.plot(time, centre, color=colour, lw=1.6, label=label)
    known = np.flatnonzero(np.isfinite(centre))
    if len(known) and known[-1] < len(time) - 1:
        last = np.clip(centre[known[-1]], *axis.get_ylim())
        axis.plot(time[known[-1]], last, "x", color=colour, ms=7, mew=2, clip_on=False)


def _over_robots(values: np.ndarray) -> np.ndarray:
    """Return the mean over the robots that still walk, NaN where none does."""
    alive = np.isfinite(values).sum(0)
    return np.where(alive > 0, np.nansum(values, 0) / np.maximum(alive, 1), np.nan)


def draw_mechanics(traces: Sequence[PolicyTrace], detail: tuple[float, float], foot: str) -> Figure:
    """Draw power, foot speed, slip, impulse and contact power of one robot during a few steps.

    Args:
        traces: The first of each arm is drawn.
        detail: Start and end, s.
        foot: Foot whose impulse is drawn.
    """
    arms = by_arm(traces)
    colours = arm_colours(arms)
    panels = (
        ("joint_power", r"joint power  $\sum_j |\tau_j \dot q_j|$, W"),
        ("foot_speed", r"planar speed of the feet  $\sum_f |v_{f,xy}|$, m/s"),
        ("slip_velocity", "the same of feet in contact: slip, m/s"),
        (f"foot_impulse_{foot}", f"impulse of the {_foot_name(foot)}, N s"),
        ("contact_power", r"contact power  $\sum_f F_f \cdot v_f$, W"),
    )
    figure = new_figure(10.5, 8.8)
    axes = figure.subplots(len(panels), 1, sharex=True)
    for row, (axis, (name, title)) in enumerate(zip(axes, panels, strict=True)):
        for arm, group in arms.items():
            trace = group[0]
            shown = (trace.time >= detail[0]) & (trace.time <= detail[1])
            values = trace.quantities[name][0][shown]
            walks = np.isfinite(values).any()
            label = (arm if walks else f"{arm} (already fallen)") if row == 0 else None
            axis.plot(trace.time[shown], values, color=colours[arm], lw=1.5, label=label)
        axis.set_title(title, loc="left", fontsize=10)
        axis.grid(color=PALE, lw=0.8)
    axes[-1].set_xlabel("time, s")
    axes[-1].set_xlim(*detail)
    figure.suptitle(
        "Mechanics that no policy observes: one robot, from the same initial state", fontsize=11
    )
    figure.legend(loc="outside lower center", ncols=min(7, len(arms)), frameon=False)
    return figure


def _foot_name(foot: str) -> str:
    """Return the plain name of a foot, e.g. ``left foot``."""
    return foot.replace("_ankle_roll", " foot").replace("_", " ")
