"""How figures look: one colour per arm everywhere, and files that do not change without reason."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor._extras import missing_extra
from prism_motor._figures import STYLE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, PALE, BAND = "#222222", "#DDDDDD", "#F5F5F5"
"""Text, commands and what belongs to no arm; grids; bands behind the data."""

ARM_COLOURS = {
    "mlp": "#7A7A7A",
    "mlp-larger": "#0072B2",
    "gated": "#D55E00",
    "residual": "#009E73",
}
"""Colours of the arms by name, from Okabe and Ito: distinct with the common colour deficiencies."""

_FURTHER = ("#CC79A7", "#56B4E9", "#E69F00", "#6A3D9A", "#8C6D31", "#1B1B1B")
"""Colours of arms with other names, in the order in which they come."""


def arm_colours(arms: Iterable[str]) -> dict[str, str]:
    """Give every arm its colour; arms with a name of their own take further ones in turn."""
    colours: dict[str, str] = {}
    others = 0
    for arm in dict.fromkeys(arms):
        if arm in ARM_COLOURS:
            colours[arm] = ARM_COLOURS[arm]
        else:
            colours[arm] = _FURTHER[others % len(_FURTHER)]
            others += 1
    return colours


def check_matplotlib(what: str) -> None:
    """Say how to get matplotlib before heavy work starts without it."""
    if find_spec("matplotlib") is None:
        raise missing_extra(what, "analysis", ImportError(name="matplotlib"))


def save_png(figure: Figure, file: Path) -> Path:
    """Write a figure; the same figure gives the same bytes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=160, metadata={"Software": None})
    return file


__all__ = [
    "ARM_COLOURS",
    "BAND",
    "INK",
    "PALE",
    "STYLE",
    "arm_colours",
    "check_matplotlib",
    "new_figure",
    "save_png",
]
