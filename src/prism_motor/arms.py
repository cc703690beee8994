"""The arms of a comparison, one table for all domains: names, titles, colours, order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle

REFERENCE = "mlp-matched"
"""The arm that others are compared with by default."""


@dataclass(frozen=True)
class ArmStyle:
    """How an arm is shown in every table, figure and page."""

    title: str
    """What it is, in a few words."""
    colour: str
    """Its colour in every figure and page."""


STYLES: dict[str, ArmStyle] = {
    "mlp": ArmStyle("the backbone's plain MLP", "#7A7A7A"),
    "linear": ArmStyle("LeRobot's own linear projection", "#7A7A7A"),
    "mlp-matched": ArmStyle("an MLP with the parameters of prism", "#0072B2"),
    "mlp-matched-residual": ArmStyle("an MLP with the parameters of prism-residual", "#56B4E9"),
    "mlp-matched-residual-gated": ArmStyle(
        "an MLP with the parameters of prism-residual-gated", "#A6CEE3"
    ),
    "mlp-matched-after": ArmStyle("an MLP with the parameters of prism-after", "#4D4DA6"),
    "mlp-large": ArmStyle("the paper's larger MLP", "#CC79A7"),
    "prism": ArmStyle("PRISM", "#D55E00"),
    "prism-residual": ArmStyle("the paper's residual actor", "#009E73"),
    "prism-residual-gated": ArmStyle("the residual actor with learned gates", "#5E8C31"),
    "prism-after": ArmStyle("the abstract's actor, polynomial after the MLP", "#B8860B"),
}
"""Known arms, in table order; others come after them.

The main arms have colours of Okabe and Ito: distinct under the common colour-vision deficiencies.
"""

SPARE_COLOURS = ("#E69F00", "#6A3D9A", "#8C6D31", "#1B1B1B", "#B2DF8A", "#FB9A99")
"""Colours of arms that are not in the table, in order of appearance."""


def arm_order(name: str) -> tuple[int, str]:
    """Return a key that sorts arms: those in the table first, in its order, then by name."""
    known = list(STYLES)
    return (known.index(name) if name in known else len(known), name)


def arm_colours(names: Iterable[str]) -> dict[str, str]:
    """Return the colour of every arm; a known arm has the same colour everywhere."""
    colours: dict[str, str] = {}
    spare = cycle(SPARE_COLOURS)
    for name in dict.fromkeys(names):
        colours[name] = STYLES[name].colour if name in STYLES else next(spare)
    return colours
