"""How every figure of the package looks; matplotlib is imported when the first one is drawn."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

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
"""Settings of matplotlib for all figures; draw and save inside ``rc_context(STYLE)``."""


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that needs no display; sizes are in inches."""
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
