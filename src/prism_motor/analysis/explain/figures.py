"""Figures of an explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism_motor._figures import BLUE, GREEN, GREY, INK, ORANGE, PALE, PINK, new_figure
from prism_motor.analysis.explain.names import GROUPS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from torch import Tensor

    from prism_motor.analysis.explain.explanation import Explanation
    from prism_motor.analysis.explain.removals import RemovalCurve

_FEET = (BLUE, ORANGE, GREEN, PINK)

_SMALLEST_REACH = 0.02
"""How far gates are shown about their start at least: not less because none of them moved."""


def draw_groups(explanation: Explanation) -> Figure:
    """Draw the products of input groups: what they do, and where training put them."""
    figure = new_figure(11.6, 5.4)
    left, right = figure.subplots(1, 2)
    matrix = explanation.groups
    effect = 1000 * matrix.effect.numpy()
    largest = float(effect.max())
    form = "{:.0f}" if largest >= 10 else "{:.1f}" if largest >= 1 else "{:.2g}"
    image = _draw_matrix(left, effect, "Blues", (0.0, largest), form)
    left.set_title("What they do\nchange of the joint target when removed, mrad")
    figure.colorbar(image, ax=left, shrink=0.7, label="mean L2 change, mrad")
    with np.errstate(divide="ignore", invalid="ignore"):
        doublings = np.log2(matrix.concentration.numpy())
    image = _draw_matrix(
        right, doublings, "PuOr_r", (-3.0, 3.0), "{:.1f}", matrix.concentration.numpy()
    )
    right.set_title("Where training put them\ntheir weight, relative to an untrained layer")
    bar = figure.colorbar(image, ax=right, shrink=0.7, extend="both")
    bar.set_ticks([-3, -2, -1, 0, 1, 2, 3], labels=["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    bar.set_label("times the untrained share")
    note = ""
    if 1000 * matrix.beyond > 0.01 * largest:
        note = f"; products of three or more inputs together: {1000 * matrix.beyond:.2g} mrad"
    about = explanation.about
    figure.suptitle(
        f"Products of input groups: {about['arm']}, {about['preset']}, training seed "
        f"{about['training_seed']}{note}"
    )
    return figure


def _draw_matrix(
    axis: Axes,
    values: np.ndarray,
    colours: str,
    limits: tuple[float, float],
    form: str,
    shown: np.ndarray | None = None,
) -> AxesImage:
    """Draw the lower triangle of a table with its numbers; returns the image."""
    from matplotlib import colormaps

    size = len(GROUPS)
    lower = np.tri(size, dtype=bool)
    low, high = limits
    image = axis.imshow(np.where(lower, values, np.nan), cmap=colours, vmin=low, vmax=high or 1.0)
    shown = values if shown is None else shown
    for row, column in zip(*np.nonzero(lower), strict=True):
        if not np.isfinite(shown[row, column]):
            text, dark = "–", False
        else:
            text = form.format(shown[row, column])
            red, green, blue, _ = colormaps[colours](image.norm(values[row, column]))
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
        axis.text(
            column, row, text, ha="center", va="center", fontsize=9,
            color="white" if dark else INK,
        )  # fmt: skip
    axis.set_xticks(range(size), GROUPS, rotation=40, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(size), GROUPS)
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
    return image


def draw_firing(explanation: Explanation) -> Figure:
    """Draw the strongest products along a few seconds of one robot, over its footfalls."""
    firing = explanation.firing
    figure = new_figure(9.2, 1.0 + 1.05 * len(firing.traces))
    ratios = [0.13 * len(firing.contacts) + 0.12] + [1.0] * len(firing.traces)
    feet, *axes = figure.subplots(
        len(firing.traces) + 1, 1, sharex=True, gridspec_kw={"height_ratios": ratios}
    )
    limit = 1050 * max(float(np.abs(trace.change).max()) for trace in firing.traces)
    for axis, trace in zip(axes, firing.traces, strict=True):
        for number, on in enumerate(firing.contacts.values()):
            if len(firing.contacts) <= 2:  # the shades of more feet would blur together
                _shade(axis, firing.seconds, on, _FEET[number % len(_FEET)])
        axis.axhline(0, color=INK, lw=0.6)
        axis.plot(firing.seconds, 1000 * trace.change, color=INK, lw=1.6)
        axis.set_ylim(-limit, limit)
        axis.set_title(f"{trace.product}   →  {trace.joint}", loc="left", fontsize=9.5, pad=3)
        axis.tick_params(length=2)
    for number, (foot, on) in enumerate(firing.contacts.items()):
        colour = _FEET[number % len(_FEET)]
        _shade(feet, firing.seconds, on, colour, 0.9, (-number - 0.9, -number - 0.1))
        feet.annotate(
            _foot_name(foot), (1.005, -number - 0.5), xycoords=("axes fraction", "data"),
            color=colour, fontsize=8.5, va="center",
        )  # fmt: skip
    feet.set_ylim(-len(firing.contacts), 0)
    feet.set_yticks([])
    feet.set_title("feet on the ground", loc="left", fontsize=9.5, pad=3)
    for side in ("left", "bottom"):
        feet.spines[side].set_visible(False)
    feet.tick_params(length=0)
    axes[-1].set_xlim(firing.seconds[0], firing.seconds[-1])
    axes[-1].set_xlabel("time since the episode began, s")
    figure.supylabel("what the product adds to the joint's target, mrad", fontsize=10)
    return figure


def _shade(
    axis: Axes,
    seconds: np.ndarray,
    on: np.ndarray,
    colour: str,
    alpha: float = 0.10,
    span: tuple[float, float] | None = None,
) -> None:
    """Shade the times when a foot is on the ground."""
    if span is None:
        axis.fill_between(
            seconds, 0, 1, where=on, step="mid", color=colour, alpha=alpha, lw=0,
            transform=axis.get_xaxis_transform(),
        )  # fmt: skip
    else:
        axis.fill_between(seconds, *span, where=on, step="mid", color=colour, alpha=alpha, lw=0)


def _foot_name(body: str) -> str:
    """Return the plain name of a foot, e.g. ``front left``."""
    sides = [part for part in body.split("_") if part in ("front", "rear", "left", "right")]
    return " ".join(sides) or body


def draw_curve(curve: RemovalCurve, gates: tuple[Tensor, float] | None) -> Figure:
    """Draw how the target moves as products are removed, and where the gates went."""
    figure = new_figure(5.6 if gates is None else 10.4, 3.9)
    axes = figure.subplots(1, 1 if gates is None else 2, squeeze=False)[0]
    _draw_removal(axes[0], curve)
    if gates is not None:
        _draw_gates(axes[1], gates)
    return figure


def _draw_removal(axis: Axes, curve: RemovalCurve) -> None:
    mrad = {name: 1000 * np.array(getattr(curve, name)) for name in vars(curve)}
    counts = np.array(curve.counts)
    axis.fill_between(
        counts, mrad["random_low"], mrad["random_high"], color=PALE, lw=0,
        label="random products, 95 % of draws",
    )  # fmt: skip
    axis.plot(counts, mrad["random"], color=GREY, lw=1.6, label="random products, mean")
    axis.plot(
        counts, mrad["by_strength"], "--o", color=BLUE, ms=4, mfc="white", lw=1.6,
        label="largest weights first",
    )  # fmt: skip
    axis.plot(
        counts, mrad["by_effect"], "-o", color=ORANGE, ms=4, lw=1.8,
        label="largest effect first (ranked on other robots)",
    )  # fmt: skip
    axis.set_xscale("log")
    axis.set_xticks(counts, [f"{count}" for count in counts])
    axis.minorticks_off()
    axis.set_ylim(0, 1.42 * max(mrad["by_effect"].max(), mrad["random_high"].max(), 1e-9))
    axis.set_xlabel("products removed together")
    axis.set_ylabel("L2 change of the joint target, mrad")
    axis.set_title("A few products, or all of them?")
    axis.grid(color="#eeeeee", lw=0.8)
    axis.legend(frameon=False, fontsize=8.5, loc="upper left")


def _draw_gates(axis: Axes, found: tuple[Tensor, float]) -> None:
    from matplotlib.ticker import MaxNLocator

    gates, start = found
    # About where they started, which is near zero or at one.
    reach = max(1.05 * float((gates - start).abs().max()), _SMALLEST_REACH)
    bins = np.linspace(start - reach, start + reach, 41).tolist()
    names = [f"degree {k}" for k in range(2, len(gates) + 2)]
    axis.hist(
        [row.numpy() for row in gates], bins=bins, stacked=True, label=names,
        color=(ORANGE, BLUE, GREEN, PINK)[: len(gates)] if len(gates) < 5 else None,
    )  # fmt: skip
    axis.axvline(start, color=INK, lw=1.4, ls="--")
    axis.annotate(
        f"start, {start:g}", (start, 0.985), xycoords=("data", "axes fraction"),
        xytext=(-5, 0), textcoords="offset points", ha="right", va="top", fontsize=8.5,
    )  # fmt: skip
    if len(gates) > 1:
        axis.legend(frameon=False, fontsize=8.5)
    axis.set_xlabel("gate")
    axis.set_ylabel("features")
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_title("How far the gates moved")
