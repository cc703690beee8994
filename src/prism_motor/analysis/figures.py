"""Figures of studies: their colours, and files that change only with reason."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor._extras import missing_extra
from prism_motor._figures import STYLE, new_figure, to_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, PALE, BAND = "#222222", "#DDDDDD", "#F5F5F5"
"""Text, commands and what belongs to no arm; grids; bands behind the data."""

GREY, BLUE, ORANGE, GREEN, PINK = "#7A7A7A", "#0072B2", "#D55E00", "#009E73", "#CC79A7"
"""From Okabe and Ito: distinct with the common colour deficiencies."""


def check_matplotlib(what: str) -> None:
    """Say how to get matplotlib before heavy work starts without it."""
    if find_spec("matplotlib") is None:
        raise missing_extra(what, "analysis", ImportError(name="matplotlib"))


def save_png(figure: Figure, file: Path) -> Path:
    """Write a figure under a temporary name first; the same figure gives the same bytes."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(to_png(figure))
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    return file


__all__ = [
    "BAND",
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "ORANGE",
    "PALE",
    "PINK",
    "STYLE",
    "check_matplotlib",
    "new_figure",
    "save_png",
]
