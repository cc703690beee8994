"""What the robot does, live: how upright it is, and how close to what it is asked for."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
import viser
from viser import uplot

from prism_motor._figures import INK
from prism_motor.viewer.tracking.session import REMEMBERED, TrackedMoment

if TYPE_CHECKING:
    from prism_motor.viewer.tracking.session import TrackingSession

_POINTS = 200
FAINT, _GRID = "#7b8794", "#e8ecf1"
GHOST = "#7a52c7"
"""Colour of the reference."""


class TrackingPlots:
    """Scrolling plots of the pelvis, the distance of the joints, and the reward.

    Args:
        gui: Where they go.
        session: What they show.
        colour: Colour of the policy, as #rrggbb.
    """

    def __init__(self, gui: viser.GuiApi, session: TrackingSession, colour: str) -> None:
        self._session, self._colour = session, colour
        self._upright = gui.add_html("")
        self._height = _Plot(gui, (0.0, 1.0), (GHOST, colour))
        self._apart = _Plot(gui, (0.0, 0.5), (colour,), last=True)
        self._reward = _Plot(gui, (0.0, 1.0), (colour,), last=True)

    def draw(self) -> None:
        """Show the last seconds up to now."""
        session = self._session
        trace = session.trace
        rows = np.array(trace, dtype=float).reshape(-1, len(TrackedMoment._fields)).T
        times = np.linspace(-REMEMBERED, 0.0, _POINTS)
        values = [_resample(rows, index, session.time + times) for index in range(1, len(rows))]
        _, height, wanted, apart, reward = values
        judged = session.prompted.prompt.kind == "reward"
        self._apart.show(not judged)
        self._reward.show(judged)
        share = "…" if np.isnan(session.upright) else f"{session.upright:.0%}"
        self._upright.content = _head("upright, last 10 s", "", [(self._colour, share)])
        last = trace[-1] if trace else TrackedMoment(0.0, True, *[float("nan")] * 4)
        self._height.draw(
            "pelvis", "m", times, [wanted, height],
            [(GHOST, _number(last.wanted)), (self._colour, _number(last.height))],
        )  # fmt: skip
        self._apart.draw(
            "joints off the reference", "rad", times, [apart],
            [(self._colour, _number(last.apart))],
        )  # fmt: skip
        self._reward.draw("reward", "", times, [reward], [(self._colour, _number(last.reward))])


class _Plot:
    """One plot with a heading."""

    def __init__(
        self,
        gui: viser.GuiApi,
        bounds: tuple[float, float],
        colours: tuple[str, ...],
        last: bool = False,
    ) -> None:
        self._head = gui.add_html("")
        lines = tuple(
            uplot.Series(stroke=colour, width=1.5, points=uplot.Series_Points(show=False))
            for colour in colours
        )
        axis = uplot.Axis(
            stroke=FAINT, size=34, font="10px sans-serif", space=14,
            grid=uplot.Axis_Grid(stroke=_GRID, width=1), ticks=uplot.Axis_Ticks(show=False),
        )  # fmt: skip
        self._plot = gui.add_uplot(
            tuple(np.zeros(2) for _ in range(len(colours) + 1)),
            (uplot.Series(), *lines),
            scales={
                "x": uplot.Scale(time=False, range=(-REMEMBERED, 0.0)),
                "y": uplot.Scale(range=bounds),
            },
            axes=({**axis, "size": 20, "show": last, "space": 40}, axis),
            legend=uplot.Legend(show=False),
            cursor=uplot.Cursor(show=False),
            height=98 if last else 80,
            padding=(4, 8, 0, 0),
        )

    def draw(
        self,
        name: str,
        unit: str,
        times: np.ndarray,
        lines: list[np.ndarray],
        numbers: list[tuple[str, str]],
    ) -> None:
        """Show lines over times, and numbers in the heading."""
        self._plot.data = (times, *lines)
        self._head.content = _head(name, unit, numbers)

    def show(self, seen: bool) -> None:
        """Show or hide it."""
        for part in (self._head, self._plot):
            if part.visible != seen:
                part.visible = seen


def _head(name: str, unit: str, numbers: list[tuple[str, str]]) -> str:
    shown = "&ensp;".join(f'<b style="color:{colour}">{text}</b>' for colour, text in numbers)
    return (
        f'<div style="display:flex;justify-content:space-between;font-size:12px;color:{INK};'
        f'padding:4px 12px 0"><span>{escape(name)} <span style="color:{FAINT}">{unit}</span></span>'
        f'<span style="font-variant-numeric:tabular-nums">{shown}</span></div>'
    )


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _resample(rows: np.ndarray, index: int, times: np.ndarray) -> np.ndarray:
    """Return a quantity at some times, NaN where there is none."""
    values = np.full(len(times), np.nan)
    if rows.shape[1]:
        known = times >= rows[0, 0]
        places = np.searchsorted(rows[0], times[known]).clip(max=rows.shape[1] - 1)
        values[known] = rows[index, places]
    return values
