"""The result pictures, as matplotlib figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._figures import new_figure
from prism_motor.studies.physics.arm import signal_names
from prism_motor.studies.physics.contenders import Contender
from prism_motor.studies.physics.summary import ArmSummary
from prism_motor.studies.physics.targets import TARGETS, Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe-Ito: distinguishable with the common colour-vision deficiencies.
BLACK, BLUE, ORANGE, GREEN = "#222222", "#0072B2", "#D55E00", "#009E73"


def colour_of(contender: Contender) -> str:
    """Colour by family: plain MLPs, PRISM, alternatives."""
    if contender.interaction is None:
        return BLACK
    return BLUE if contender.interaction == "gated" else ORANGE


def draw_overview(summaries: Sequence[ArmSummary], seeds: int) -> Figure:
    """Draw every target side by side: the figure for slides."""
    figure = new_figure(16, 0.36 * len(summaries) + 1.9)
    axes = figure.subplots(1, len(TARGETS), sharey=True)
    for axis, target in zip(axes, TARGETS, strict=True):
        _error_axis(axis, target, summaries)
    axes[0].set_yticks(range(len(summaries)), [s.contender.label for s in summaries])
    figure.suptitle(
        "Learning physics from positions, velocities and torques   "
        f"({seeds} seeds, 95 % intervals; filled: held-out episodes, "
        "open: faster than in training)",
        fontsize=11,
    )
    figure.supxlabel("variance left unexplained, % (lower is better)", fontsize=10)
    return figure


def draw_target(target: Target, summaries: Sequence[ArmSummary]) -> Figure:
    """Draw one target alone: the figure for a phone."""
    figure = new_figure(5.2, 0.3 * len(summaries) + 1.2)
    axis = figure.subplots()
    _error_axis(axis, target, summaries)
    axis.set_yticks(range(len(summaries)), [s.contender.label for s in summaries])
    axis.set_xlabel("variance left unexplained, %")
    return figure


def _error_axis(axis: Axes, target: Target, summaries: Sequence[ArmSummary]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for row, summary in enumerate(summaries):
        colour = colour_of(summary.contender)
        for dataset, shift, fill in (("test", -0.14, colour), ("extrapolation", 0.14, "white")):
            error = summary.errors[dataset][target.name]
            if not np.isfinite(error.centre):
                axis.annotate(
                    "diverged", (0.98, row + shift), xycoords=("axes fraction", "data"),
                    ha="right", va="center", fontsize=8, color=colour,
                )  # fmt: skip
                continue
            low, centre, high = 100 * error.low, 100 * error.centre, 100 * error.high
            axis.plot([low, high], [row + shift] * 2, color=colour, lw=1.6, zorder=2)
            axis.plot(centre, row + shift, "o", ms=6, color=colour, mfc=fill, mew=1.4, zorder=3)
    axis.set_xscale("log")
    axis.set_ylim(len(summaries) - 0.5, -0.5)
    axis.set_title(f"{target.label}\n{target.formula}")
    low, high = axis.get_xlim()
    if high / low < 4:  # at least a factor of four, else small differences look large
        middle = (low * high) ** 0.5
        axis.set_xlim(middle / 2, middle * 2)
    low, high = axis.get_xlim()
    subs = (1.0, 2.0, 5.0) if high / low > 15 else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    axis.xaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(axis="x", color="#dddddd", lw=0.8)
    axis.tick_params(axis="y", length=0)


def draw_curves(runs: Sequence[tuple[Contender, Sequence[dict[str, Any]]]]) -> Figure:
    """Draw the validation error during training, geometric mean over targets and seeds."""
    figure = new_figure(7.6, 4.2)
    axis = figure.subplots()
    styles = {BLACK: iter(("-", "--")), BLUE: iter((":", "-", "--")), ORANGE: iter("")}
    markers = iter("osD^v")
    for contender, entries in runs:
        curves = np.array([entry["curve"] for entry in entries], dtype=float)  # None becomes nan
        centre = 100 * np.exp(np.log(curves[..., 1]).mean(0))
        colour = colour_of(contender)
        line = next(styles[colour], "-")
        marker = next(markers) if colour == ORANGE else ""
        axis.plot(
            curves[0, :, 0], centre, line, marker=marker, ms=4.5, mfc="white",
            color=colour, lw=1.7, label=contender.label,
        )  # fmt: skip
    axis.set_yscale("log")
    axis.set_xlabel("optimiser steps")
    axis.set_ylabel("unexplained, % (all targets)")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(
        lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in "235" else ""
    )
    axis.grid(color="#e4e4e4", lw=0.8, which="both")
    axis.legend(fontsize=8.5, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_pairs(strength: np.ndarray) -> Figure:
    """Draw which products of two signals a PRISM layer of degree 2 formed."""
    names = signal_names()
    figure = new_figure(5.6, 5.0)
    axis = figure.subplots()
    shown = np.where(np.tri(len(names), dtype=bool), strength / strength.max(), np.nan)
    image = axis.imshow(shown, cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(names)), names)
    axis.tick_params(length=0)
    for edge in (3.5, 7.5):
        axis.axhline(edge, color="white", lw=2)
        axis.axvline(edge, color="white", lw=2)
    for spine in axis.spines.values():
        spine.set_visible(False)
    figure.colorbar(image, ax=axis, shrink=0.75, label="strength of the product (largest = 1)")
    return figure
