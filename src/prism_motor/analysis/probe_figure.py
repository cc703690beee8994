"""The picture of a probe study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prism_motor.analysis.probe_core import ANY_ARM, UNTRAINED
from prism_motor.analysis.probe_data import Domain
from prism_motor.analysis.probe_summary import Row, feature_rank
from prism_motor.analysis.style import BAND, INK, PALE, arm_colours, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABELS = {
    "raw": "raw observation",
    "first_order": "first-order latent",
    "polynomial": "polynomial latent",
    "conditioner": "conditioner output",
}


_COLUMNS = 3
"""Most panels side by side."""


def draw_probes(rows: Sequence[Row], domain: Domain, subtitle: str) -> Figure:
    """Draw the error of every feature and arm, one panel a target."""
    features = sorted({row.features for row in rows}, key=feature_rank)
    arms = [arm for arm in dict.fromkeys(row.arm for row in rows) if arm != ANY_ARM]
    colours = arm_colours(arm for arm in arms if not arm.endswith(UNTRAINED))
    colours |= {arm: colours[arm.removesuffix(UNTRAINED)] for arm in arms}
    across = min(_COLUMNS, len(domain.targets))
    down = -(-len(domain.targets) // across)
    height = 1.5 + down * (0.6 + len(features) * max(0.28, 0.1 * len(arms) + 0.06))
    figure = new_figure(10.5, height)
    axes = figure.subplots(down, across, sharey=True, squeeze=False)
    for axis, (index, target) in zip(axes.flat, enumerate(domain.targets), strict=True):
        for row in rows:
            _mark(axis, row, index, features.index(row.features), arms, colours)
        for place in range(0, len(features), 2):
            axis.axhspan(place - 0.5, place + 0.5, color=BAND, lw=0, zorder=0)
        axis.set_title(target.label)
        axis.set_xlim(left=0.0)
        axis.grid(axis="x", color=PALE, lw=0.8)
        axis.tick_params(axis="y", length=0)
    labels = [_LABELS.get(name, name.replace("_", " layer ")) for name in features]
    axes[0, 0].set_yticks(range(len(features)), labels)
    axes[0, 0].set_ylim(len(features) - 0.5, -0.5)
    bars = f"bars: 95 % over {domain.units}"
    if any(len(row.probes) > 1 for row in rows):
        bars = f"bars: SD over training seeds, or 95 % over {domain.units} where there is one seed"
    # Above all panels, because one is too narrow for it.
    figure.suptitle(
        f"How well future mechanics can be read linearly   ({subtitle})\n"
        f"squared error / variance on held-out {domain.units}, lower is better; {bars}",
        fontsize=10,
    )
    handles = [_handle(colours[arm], arm) for arm in arms]
    columns = min(6, len(arms))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _mark(
    axis: Axes, row: Row, target: int, place: int, arms: list[str], colours: dict[str, str]
) -> None:
    found = row.scores["mse"][target]
    shift = 0.0
    if row.arm != ANY_ARM:
        shift = 0.9 * ((arms.index(row.arm) + 0.5) / len(arms) - 0.5)
    colour = colours.get(row.arm, INK)
    fill = "white" if row.arm.endswith(UNTRAINED) else colour
    axis.plot([found.low, found.high], [place + shift] * 2, color=colour, lw=1.6, zorder=2)
    axis.plot(found.value, place + shift, "o", ms=5, color=colour, mfc=fill, mew=1.3, zorder=3)
    if row.arm == ANY_ARM:
        axis.axvline(found.value, color=INK, lw=0.8, ls=":", zorder=1)


def _handle(colour: str, arm: str) -> object:
    from matplotlib.lines import Line2D

    fill = "white" if arm.endswith(UNTRAINED) else colour
    return Line2D([], [], color=colour, marker="o", ms=5, mfc=fill, lw=1.6, label=arm)
