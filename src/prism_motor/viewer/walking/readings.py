"""What the robots do, live: velocities against the command, and the products that fire."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import viser
from viser import uplot

from prism_motor._figures import INK
from prism_motor.viewer.walking.walker import REMEMBERED, Walker

if TYPE_CHECKING:
    from prism_motor.analysis.live import TopInteractions
    from prism_motor.viewer.walking.session import Session

_AXES = (("forward", "m/s"), ("left", "m/s"), ("turn", "rad/s"))
_POINTS = 200
"""Points of a trace."""
_FIRED = 60
"""Values kept per product; at 12 per second these are the last five seconds."""
FAINT, _GRID = "#7b8794", "#e8ecf1"


class VelocityPlots:
    """Three scrolling plots: the command, and what each walker did.

    Args:
        gui: Where they go.
        session: What they show.
    """

    def __init__(self, gui: viser.GuiApi, session: Session) -> None:
        self._session = session
        self._heads, self._plots = [], []
        for axis, limit in enumerate(_limits(session.walkers)):
            self._heads.append(gui.add_html(""))
            self._plots.append(self._add_plot(gui, limit, last=axis == len(_AXES) - 1))

    def _add_plot(self, gui: viser.GuiApi, limit: float, last: bool) -> viser.GuiUplotHandle:
        colours = [INK, *(walker.colour for walker in self._session.walkers)]
        lines = tuple(
            uplot.Series(stroke=colour, width=1.5, points=uplot.Series_Points(show=False))
            for colour in colours
        )
        axis = uplot.Axis(
            stroke=FAINT, size=34, font="10px sans-serif", space=14,
            grid=uplot.Axis_Grid(stroke=_GRID, width=1), ticks=uplot.Axis_Ticks(show=False),
        )  # fmt: skip
        return gui.add_uplot(
            tuple(np.zeros(2) for _ in range(len(colours) + 1)),
            (uplot.Series(), *lines),
            scales={
                "x": uplot.Scale(time=False, range=(-REMEMBERED, 0.0)),
                "y": uplot.Scale(range=(-limit, limit)),
            },
            axes=({**axis, "size": 20, "show": last, "space": 40}, axis),
            legend=uplot.Legend(show=False),
            cursor=uplot.Cursor(show=False),
            height=98 if last else 80,
            padding=(4, 8, 0, 0),
        )

    def draw(self) -> None:
        """Show the last seconds up to now."""
        session = self._session
        times = np.linspace(-REMEMBERED, 0.0, _POINTS)
        rows = [
            _resample(walker, session.time + times if i in session.shown else None)
            for i, walker in enumerate(session.walkers)
        ]
        told = rows[session.shown[0]]
        for axis, (head, plot) in enumerate(zip(self._heads, self._plots, strict=True)):
            plot.data = (times, told[:, axis], *(each[:, 3 + axis] for each in rows))
            head.content = self._head(axis)

    def _head(self, axis: int) -> str:
        name, unit = _AXES[axis]
        walking = self._session.walking
        values = [(INK, self._session.leader.command[axis])]
        values += [(walker.colour, walker.velocity[axis]) for walker in walking]
        numbers = "&ensp;".join(
            f'<b style="color:{colour}">{round(value, 2) + 0.0:.2f}</b>' for colour, value in values
        )
        return (
            f'<div style="display:flex;justify-content:space-between;font-size:12px;color:{INK};'
            f'padding:4px 12px 0"><span>{name} <span style="color:{FAINT}">{unit}</span></span>'
            f'<span style="font-variant-numeric:tabular-nums">{numbers}</span></div>'
        )


class FiringPlots:
    """The strongest products of each walker's policy, with their last seconds.

    Args:
        gui: Where they go.
        session: What is shown.
        tops: The products per walker; ``None`` for policies without any.
    """

    def __init__(
        self, gui: viser.GuiApi, session: Session, tops: Sequence[TopInteractions | None]
    ) -> None:
        self._session, self._tops = session, tops
        self._view = gui.add_html("")
        self._read = -1.0
        self._kept = [
            [deque([0.0] * _FIRED, maxlen=_FIRED) for _ in (top.names if top else ())]
            for top in tops
        ]

    def draw(self) -> None:
        """Show the products up to now."""
        if self._session.time > self._read:
            self._read = self._session.time
            for i in self._session.shown:
                self._append(i)
        parts = "".join(self._section(i) for i in self._session.shown)
        self._view.content = (
            f'<div style="padding:4px 12px 8px;font-size:11px;color:{INK}">'
            f'<div style="color:{FAINT}">how far joint targets would move without a product</div>'
            f"{parts}</div>"
        )

    def _append(self, index: int) -> None:
        top, observation = self._tops[index], self._session.walkers[index].observation[0]
        if top is not None:
            values = (value for _, value in top.update(observation))
            for kept, value in zip(self._kept[index], values, strict=True):
                kept.append(value)

    def _section(self, index: int) -> str:
        walker, top, kept = self._session.walkers[index], self._tops[index], self._kept[index]
        title = (
            f'<div style="font-weight:600;font-size:12px;margin-top:6px;color:{walker.colour}">'
            f"{escape(walker.name)}</div>"
        )
        if top is None:
            return title + "This policy has no explicit products: it mixes its inputs internally."
        scale = max(max(map(abs, values)) for values in kept) or 1.0
        return title + "".join(
            _product(name, role, values, scale, walker.colour)
            for name, role, values in zip(top.names, top.roles, kept, strict=True)
        )


def _product(name: str, role: str, values: Sequence[float], scale: float, colour: str) -> str:
    """Return one product: its name, its last seconds as an area plot, and its current value."""
    width, middle = 100, 8
    points = " ".join(
        f"{width * i / (len(values) - 1):.1f},{middle * (1 - value / scale):.1f}"
        for i, value in enumerate(values)
    )
    return (
        f'<div title="{escape(role)}" style="margin-top:3px">'
        '<div style="white-space:nowrap;overflow:hidden;text-overflow:ellipsis">'
        f'{escape(name)}</div><div style="display:flex;align-items:center;gap:8px">'
        f'<svg viewBox="0 0 {width} {2 * middle}" preserveAspectRatio="none" '
        f'style="flex:1;height:{2 * middle}px;background:#f6f8fa">'
        f'<polygon points="0,{middle} {points} {width},{middle}" fill="{colour}" opacity="0.8"/>'
        '</svg><span style="width:64px;text-align:right;white-space:nowrap;'
        f'font-variant-numeric:tabular-nums">{1e3 * values[-1]:+.0f} mrad</span></div></div>'
    )


def _resample(walker: Walker, times: np.ndarray | None) -> np.ndarray:
    """Return command and velocity (6) at some times, NaN where there are none."""
    rows = np.full((_POINTS, 6), np.nan)
    if times is not None and walker.trace:
        trace = np.array(walker.trace)
        known = times >= trace[0, 0]
        places = np.searchsorted(trace[:, 0], times[known]).clip(max=len(trace) - 1)
        rows[known] = trace[places, 1:]
    return rows


def _limits(walkers: Sequence[Walker]) -> tuple[float, float, float]:
    """Return the range of the plots: slightly beyond the training commands."""
    trained = [walker.task.commands for walker in walkers]
    forward = max(abs(value) for config in trained for value in config.forward)
    sideways = max(abs(value) for config in trained for value in config.sideways)
    return 1.6 * forward, 1.6 * sideways, 1.1 * max(config.turn_limit for config in trained)
