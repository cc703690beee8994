"""Line charts as inline SVG: they follow the colours of the page and answer to the pointer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np

from prism_motor.report.curves import Axis, Curve, Quantity

STYLE = """
.charts { display: grid; gap: 0.4rem 1.4rem;
  grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); }
.chart { position: relative; margin: 0.3rem 0; }
.chart svg { display: block; width: 100%; height: auto; overflow: visible; touch-action: pan-y; }
.chart text { fill: var(--soft); font: 10.5px system-ui, -apple-system, "Segoe UI", sans-serif; }
.chart .name { fill: var(--ink); font-size: 12px; font-weight: 600; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .band { fill: var(--shade); opacity: 0.17; }
.chart .line { fill: none; stroke: var(--shade); stroke-width: 1.9; stroke-linejoin: round; }
.chart .part { stroke-width: 1.2; stroke-dasharray: 2 3; }
.chart .twin { stroke-dasharray: 7 3; }
.chart .cursor { stroke: var(--soft); stroke-width: 1; visibility: hidden; }
.tip { position: absolute; top: 1.6rem; pointer-events: none; visibility: hidden; z-index: 2;
  background: var(--ground); border: 1px solid var(--line); border-radius: 6px; padding: 0.3rem
  0.55rem; font-size: 0.78rem; line-height: 1.45; white-space: nowrap;
  box-shadow: 0 2px 10px rgb(0 0 0 / 0.14); font-variant-numeric: tabular-nums; }
.arm { --shade: var(--hue); }
@media (prefers-color-scheme: dark) {
  .arm { --shade: color-mix(in srgb, var(--hue) 68%, white); } }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; font-size: 0.88rem; padding: 0;
  margin: 0.5rem 0; list-style: none; max-width: none; }
.legend li { display: flex; align-items: center; gap: 0.45rem; margin: 0; }
.legend svg { width: 24px; height: 8px; }
.legend line { stroke: var(--shade); stroke-width: 3; }
.legend .twin { stroke-dasharray: 7 3; }
"""

SCRIPT = """
for (const chart of document.querySelectorAll('.chart')) {
  const data = JSON.parse(chart.querySelector('script').textContent);
  const svg = chart.querySelector('svg'), cursor = chart.querySelector('.cursor');
  const tip = chart.querySelector('.tip');
  const hide = () => { cursor.style.visibility = tip.style.visibility = 'hidden'; };
  const show = (event) => {
    const box = svg.getBoundingClientRect(), scale = data.width / box.width;
    const at = (event.clientX - box.left) * scale;
    const x = data.low + (at - data.left) / (data.right - data.left) * (data.high - data.low);
    const lines = [];
    for (const curve of data.curves) {
      if (x < curve.x[0] || x > curve.x[1]) continue;
      const last = curve.mean.length - 1;
      const i = Math.round((x - curve.x[0]) / (curve.x[1] - curve.x[0]) * last);
      const spread = curve.low ? ` [${curve.low[i]}, ${curve.high[i]}]` : '';
      lines.push([curve.name, curve.hue, `${curve.mean[i]}${spread}`]);
    }
    if (!lines.length) { hide(); return; }
    cursor.setAttribute('x1', at); cursor.setAttribute('x2', at);
    tip.replaceChildren(document.createTextNode(`${x.toPrecision(3)} ${data.unit}`));
    for (const [name, hue, text] of lines) {
      const row = document.createElement('div'), label = document.createElement('b');
      label.className = 'arm'; label.style.setProperty('--hue', hue);
      label.style.color = 'var(--shade)'; label.textContent = `${name} `;
      row.append(label, text); tip.append(row);
    }
    const left = (event.clientX - box.left) + 14, room = box.width - tip.offsetWidth;
    tip.style.left = `${Math.max(0, left > room ? left - tip.offsetWidth - 28 : left)}px`;
    cursor.style.visibility = tip.style.visibility = 'visible';
  };
  svg.addEventListener('pointermove', show);
  svg.addEventListener('pointerdown', show);
  svg.addEventListener('pointerleave', hide);
}
"""
"""Shows the values under the pointer."""

_WIDTH, _HEIGHT = 360, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 352, 26, 200


def draw_legend(colours: Mapping[str, str]) -> str:
    """Return the names of the arms with their colours."""
    twins = twin_labels(colours)
    items = (
        f'<li class="arm" style="--hue:{colour}"><svg viewBox="0 0 24 8" aria-hidden="true"><line '
        f'class="{"twin" if label in twins else ""}" x1="1" y1="4" x2="23" y2="4"/></svg>'
        f"{escape(label)}</li>"
        for label, colour in colours.items()
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def twin_labels(colours: Mapping[str, str]) -> set[str]:
    """Return the labels whose colour was given before; their lines are dashed."""
    labels = list(colours)
    return {x for i, x in enumerate(labels) if colours[x] in {colours[y] for y in labels[:i]}}


def draw_chart(
    curves: Sequence[Curve], quantity: Quantity, axis: Axis, colours: Mapping[str, str]
) -> str:
    """Return one chart as HTML, or nothing without any curve.

    Args:
        curves: What to draw.
        quantity: The vertical axis.
        axis: The horizontal axis.
        colours: Colours by label of the arm.
    """
    if not curves:
        return ""
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

    marks = []
    for tick in _log_ticks(low, high) if log else _ticks(low, high, 5):
        y = float(place_y(np.array(tick)))
        marks.append(f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        marks.append(f'<text x="{_LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in _ticks(0.0, end, 5):
        x = float(place_x(np.array(tick)))
        marks.append(f'<text x="{x:.1f}" y="{_BOTTOM + 15}" text-anchor="middle">{tick:g}</text>')
    twins = twin_labels(colours)
    lines = [_line(c, place_x, place_y, colours[c.arm.label], c.arm.label in twins) for c in curves]
    data = {
        "width": _WIDTH, "left": _LEFT, "right": _RIGHT, "low": 0.0, "high": end,
        "unit": axis.title, "curves": [_values(c, colours[c.arm.label]) for c in curves],
    }  # fmt: skip
    name = f"{quantity.title}, {quantity.unit}"
    middle = (_LEFT + _RIGHT) / 2
    return (
        f'<figure class="chart"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(name)} over {escape(axis.title)}">'
        f'<text class="name" x="0" y="13">{escape(name)}</text>{"".join(marks)}{"".join(lines)}'
        f'<text x="{middle}" y="{_BOTTOM + 32}" text-anchor="middle">{escape(axis.title)}</text>'
        f'<line class="cursor" y1="{_TOP}" y2="{_BOTTOM}"/></svg><div class="tip"></div>'
        f'<script type="application/json">{_safe_json(data)}</script></figure>'
    )


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


def _values(c: Curve, colour: str) -> dict:
    """Return what the pointer shows, with three significant digits."""
    name = c.arm.label if c.finished else f"{c.arm.label} (seed {c.seeds[0]}, not finished)"
    found = {"name": name, "hue": colour, "x": [float(c.x[0]), float(c.x[-1])]}
    found["mean"] = [float(f"{value:.3g}") for value in c.mean]
    if len(c.seeds) > 1:
        found["low"] = [float(f"{value:.3g}") for value in c.low]
        found["high"] = [float(f"{value:.3g}") for value in c.high]
    return found


def _safe_json(data: dict) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _room(low: float, high: float, log: bool) -> tuple[float, float]:
    """Widen a range a little, so that lines do not touch the frame."""
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
