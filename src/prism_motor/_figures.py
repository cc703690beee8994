"""The common style of all figures; matplotlib is imported when the first one is drawn."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._extras import missing_extra
from prism_motor.runs.atomic import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "svg.hashsalt": "prism",
}
"""Matplotlib settings for all figures; draw and save inside ``rc_context(STYLE)``."""

INK, PALE, BAND = "#222222", "#DDDDDD", "#F5F5F5"
"""For text, commands and whatever belongs to no arm; for grids; for bands behind the data."""

GREY, BLUE, ORANGE, GREEN, PINK = "#7A7A7A", "#0072B2", "#D55E00", "#009E73", "#CC79A7"
"""From Okabe and Ito: distinct under the common colour-vision deficiencies."""


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that needs no display; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def to_svg(figure: Figure) -> bytes:
    """Render as SVG, the same bytes for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def to_png(figure: Figure) -> bytes:
    """Render as PNG, the same bytes for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, metadata={"Software": None})
    return buffer.getvalue()


def check_matplotlib(what: str) -> None:
    """Raise before any heavy work starts if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise missing_extra(what, "analysis", ImportError(name="matplotlib"))


def save_png(figure: Figure, file: Path) -> Path:
    """Write a figure atomically; the same figure gives the same bytes."""
    with atomic_file(file) as stream:
        stream.write(to_png(figure))
    return file
