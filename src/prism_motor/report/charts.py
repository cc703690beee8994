"""Line charts as inline SVG, which follow the page's colours and react to the pointer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from prism_motor.reporting import Axis, Quantity

_WIDTH, _HEIGHT = 360, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 352, 26, 200


@dataclass(frozen=True)
class Curve:
    """One line of a chart."""

    label: str
    """Label of the arm."""
    x: np.ndarray
    """Horizontal positions of the values."""
    mean: np.ndarray
    """Mean over seeds."""
    low: np.ndarray
    """Lowest seed."""
    high: np.ndarray
    """Highest seed."""
    seeds: tuple[int, ...]
    """Training seeds."""
    finished: bool
    """Whether its runs are finished."""


@dataclass(frozen=True)
class Chart:
    """One chart: an image, and the values that the page shows at the pointer."""

    svg: str
    """The image."""
    data: dict[str, Any]
    """Values by curve, and their positions in the image."""


def twin_labels(colours: Mapping[str, str]) -> set[str]:
    """Return the labels that reuse a colour; their lines are dashed."""
    labels = list(colours)
    return {x for i, x in enumerate(labels) if colours[x] in {colours[y] for y in labels[:i]}}


def draw_chart(
    curves: Sequence[Curve], quantity: Quantity, axis: Axis, colours: Mapping[str, str]
) -> Chart:
    """Return one chart.

    Args:
        curves: The curves, at least one.
        quantity: The vertical axis.
        axis: The horizontal axis.
        colours: Colours by label of the arm.
    """
    log = quantity.log_scale
    end = max(float(c.x[-1]) for c in curves)
    low = min(float(c.low.min()) for c in curves)
    high = max(float(c.high.max()) for c in curves)
    low, high = _room(low, high, log)

    def place_x(x: np.ndarray) -> np.ndarray:
        return _LEFT + (_RIGHT - _LEFT) * np.asarray(x) / end

    def place_y(y: np.ndarray) -> np.ndarray:
        start, stop = (math.log(low), math.log(high)) if log else (low, high)
        share = ((np.log(y) if log else np.asarray(y)) - start) / (stop - start)
        return _BOTTOM - (_BOTTOM - _TOP) * share

    # Axes first, with grid lines and tick labels.
    marks = []
    for tick in _log_ticks(low, high) if log else _ticks(low, high, 5):
        y = float(place_y(np.array(tick)))
        marks.append(f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        marks.append(f'<text x="{_LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in _ticks(0.0, end, 5):
        x = float(place_x(np.array(tick)))
        marks.append(f'<text x="{x:.1f}" y="{_BOTTOM + 15}" text-anchor="middle">{tick:g}</text>')
    # Then the curves, as lines and as values for the pointer.
    twins = twin_labels(colours)
    lines = [_line(c, place_x, place_y, colours[c.label], c.label in twins) for c in curves]
    data = {
        "width": _WIDTH, "left": _LEFT, "right": _RIGHT, "low": 0.0, "high": end,
        "unit": axis.title, "curves": [_values(c, colours[c.label]) for c in curves],
    }  # fmt: skip
    name = f"{quantity.title}, {quantity.unit}" if quantity.unit else quantity.title
    middle = (_LEFT + _RIGHT) / 2
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(name)} over {escape(axis.title)}">'
        f'<text class="name" x="0" y="13">{escape(name)}</text>{"".join(marks)}{"".join(lines)}'
        f'<text x="{middle}" y="{_BOTTOM + 32}" text-anchor="middle">{escape(axis.title)}</text>'
        f'<line class="cursor" y1="{_TOP}" y2="{_BOTTOM}"/></svg>'
    )
    return Chart(svg, data)


def _line(c: Curve, place_x, place_y, colour: str, twin: bool) -> str:  # noqa: ANN001
    band = ""
    if len(c.seeds) > 1:
        there = _points(place_x(c.x), place_y(c.high))
        back = _points(place_x(c.x[::-1]), place_y(c.low[::-1]))
        band = f'<path class="band" d="M{there} L{back} Z"/>'
    kind = "line" + ("" if c.finished else " part") + (" twin" if twin and c.finished else "")
    path = f'<path class="{kind}" d="M{_points(place_x(c.x), place_y(c.mean))}"/>'
    return f'<g class="arm" style="--hue:{colour}">{band}{path}</g>'


def _points(x: Iterable[float], y: Iterable[float]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _values(c: Curve, colour: str) -> dict[str, Any]:
    """Return the values shown at the pointer, with three significant digits."""
    name = c.label if c.finished else f"{c.label} (seed {c.seeds[0]}, not finished)"
    found = {"name": name, "hue": colour, "x": [float(c.x[0]), float(c.x[-1])]}
    found["mean"] = [float(f"{value:.3g}") for value in c.mean]
    if len(c.seeds) > 1:
        found["low"] = [float(f"{value:.3g}") for value in c.low]
        found["high"] = [float(f"{value:.3g}") for value in c.high]
    return found


def _room(low: float, high: float, log: bool) -> tuple[float, float]:
    """Widen a range slightly, so that lines do not touch the frame."""
    if log:
        low = max(low, 1e-6)
        high = max(high, 1.5 * low)
        return low / (high / low) ** 0.04, high * (high / low) ** 0.04
    space = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return (0.0 if 0 <= low < 0.5 * high else low - space), high + space


def _ticks(low: float, high: float, count: int) -> list[float]:
    """Return round numbers between two bounds, about ``count`` of them."""
    raw = (high - low) / count
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(scale * nice for nice in (1, 2, 2.5, 5, 10) if scale * nice >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{step * index:.10g}") for index in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between two bounds."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    candidates = [nice * 10.0**power for power in powers for nice in (1, 2, 5)]
    return [float(f"{tick:.10g}") for tick in candidates if low <= tick <= high]
