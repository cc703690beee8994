"""The figures of the study: errors, learning curves, products, and the arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._figures import new_figure
from prism_motor.arms import STYLES
from prism_motor.studies.physics.robot import (
    JOINTS,
    LANDMARKS,
    TARGETS,
    PhysicsTarget,
    load_arm,
    signal_names,
    target_columns,
    trace_landmarks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from prism_motor.studies.networks import StudyArm
    from prism_motor.studies.physics.dataset import Dataset
    from prism_motor.studies.physics.summary import PhysicsSummary

MLP, PRISM, OTHER = STYLES["mlp-matched"].colour, STYLES["prism"].colour, "#555555"
"""Colours of the families: plain MLPs, PRISM, alternatives to it."""

_BLACK, _BLUE, _RED, _GREEN = "#222222", "#0072B2", "#D55E00", "#009E73"
"""Colours of the drawn robot."""

_SNAPSHOTS = 14
"""Number of poses of the robot to draw."""

_DEPTH = np.array([0.42, 0.30])
"""Where the y axis points in the oblique drawing."""

_JOINT_AT = {"upper_arm": "yaw, shoulder", "forearm": "elbow", "hand": "wrist"}
"""Names of the joints by landmark."""


def colour_of(arm: StudyArm) -> str:
    """Colour by family: plain MLPs, PRISM, alternatives."""
    if arm.interaction is None:
        return MLP
    return PRISM if arm.interaction == "gated" else OTHER


def draw_overview(summaries: Sequence[PhysicsSummary], seeds: int) -> Figure:
    """Draw every target side by side: the figure for slides."""
    figure = new_figure(16, 0.36 * len(summaries) + 1.9)
    axes = figure.subplots(1, len(TARGETS), sharey=True)
    for axis, target in zip(axes, TARGETS, strict=True):
        _error_axis(axis, target, summaries)
    axes[0].set_yticks(range(len(summaries)), [s.arm.label for s in summaries])
    figure.suptitle(
        "Learning physics from positions, velocities and torques   "
        f"({seeds} seeds, 95 % intervals; filled: held-out episodes, "
        "open: faster than in training)",
        fontsize=11,
    )
    figure.supxlabel("variance left unexplained, % (lower is better)", fontsize=10)
    return figure


def draw_target(target: PhysicsTarget, summaries: Sequence[PhysicsSummary]) -> Figure:
    """Draw a single target: the figure for a phone."""
    figure = new_figure(5.2, 0.3 * len(summaries) + 1.2)
    axis = figure.subplots()
    _error_axis(axis, target, summaries)
    axis.set_yticks(range(len(summaries)), [s.arm.label for s in summaries])
    axis.set_xlabel("variance left unexplained, %")
    return figure


def _error_axis(axis: Axes, target: PhysicsTarget, summaries: Sequence[PhysicsSummary]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for row, summary in enumerate(summaries):
        colour = colour_of(summary.arm)
        for dataset, shift, fill in (("test", -0.14, colour), ("extrapolation", 0.14, "white")):
            error = summary.estimate(dataset, target.name)
            if error is None:
                axis.annotate(
                    "diverged", (0.98, row + shift), xycoords=("axes fraction", "data"),
                    ha="right", va="center", fontsize=8, color=colour,
                )  # fmt: skip
                continue
            centre = 100 * error.centre
            low, high = (100 * bound for bound in error.interval or (error.centre, error.centre))
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
    # Show as many numbers on the axis as fit.
    subs = (1.0, 2.0, 5.0) if high / low > 15 else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    subs = (1.0,) if high / low > 1e3 else subs
    axis.xaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(axis="x", color="#dddddd", lw=0.8)
    axis.tick_params(axis="y", length=0)


def draw_curves(runs: Sequence[tuple[StudyArm, Sequence[dict[str, Any]]]]) -> Figure:
    """Draw the validation error during training, geometric mean over targets and seeds."""
    figure = new_figure(7.6, 4.2)
    axis = figure.subplots()
    styles = {MLP: iter(("-", "--")), PRISM: iter((":", "-", "--")), OTHER: iter("")}
    markers = iter("osD^v")
    for arm, entries in runs:
        curves = np.array([entry["curve"] for entry in entries], dtype=float)  # None becomes nan
        centre = 100 * np.exp(np.log(curves[..., 1]).mean(0))
        colour = colour_of(arm)
        line = next(styles[colour], "-")
        marker = next(markers) if colour == OTHER else ""
        axis.plot(
            curves[0, :, 0], centre, line, marker=marker, ms=4.5, mfc="white",
            color=colour, lw=1.7, label=arm.label,
        )  # fmt: skip
    axis.set_yscale("log")
    axis.set_xlabel("updates")
    axis.set_ylabel("unexplained, % (all targets)")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(
        lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in "235" else ""
    )
    axis.grid(color="#e4e4e4", lw=0.8, which="both")
    axis.legend(fontsize=8.5, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_pairs(strength: np.ndarray) -> Figure:
    """Draw which products of two signals a PRISM layer of degree 2 learned."""
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


def draw_strobe(dataset: Dataset, sample_seconds: float) -> Figure:
    """Draw snapshots of one test episode: old ones pale, contact marked."""
    rows = _liveliest_window(dataset, round(1.6 / sample_seconds))
    q = dataset.test.inputs[rows, : len(JOINTS)]
    touching = dataset.test.targets[rows, target_columns()["contact_power"]].ravel() > 0
    points = _oblique(trace_landmarks(load_arm(), q))

    figure = new_figure(7.2, 4.6)
    axis = figure.subplots()
    corners = np.array([[-0.15, -0.6, 0], [0.8, -0.6, 0], [0.8, 0.6, 0], [-0.15, 0.6, 0]])
    axis.fill(*_oblique(corners).T, color="#ececec", ec="#bbbbbb", zorder=0)
    column = _oblique(np.array([[0, 0, 0], [0, 0, 0.45]]))
    axis.plot(*column.T, color="#999999", lw=9, solid_capstyle="butt", zorder=1)
    axis.plot(*points[:, -1].T, color=_GREEN, lw=1.2, alpha=0.8, label="path of the tip", zorder=2)
    chosen = np.linspace(0, len(q) - 1, _SNAPSHOTS).round().astype(int)
    for order, i in enumerate(chosen):
        alpha = 0.12 + 0.88 * (order / (_SNAPSHOTS - 1)) ** 1.6
        axis.plot(
            *points[i].T, "-o", color=_BLUE, alpha=alpha, lw=3.2, ms=4.5, solid_capstyle="round",
            zorder=3 + order,
        )  # fmt: skip
    axis.plot(*points[touching, -1].T, ".", color=_RED, ms=5, label="tip while touching", zorder=40)
    for name, at in zip(LANDMARKS[:-1], points[chosen[-1]], strict=False):
        if name in _JOINT_AT:
            axis.annotate(
                _JOINT_AT[name], at, xytext=(8, 8), textcoords="offset points", fontsize=9,
                color=_BLACK, zorder=50,
            )  # fmt: skip
    axis.set_aspect("equal")
    axis.axis("off")
    axis.legend(loc="upper right", frameon=False, fontsize=9)
    return figure


def _oblique(points: np.ndarray) -> np.ndarray:
    """Project (..., 3) to the page: x to the right, z up, y into the depth."""
    return points[..., [0, 2]] + points[..., [1]] * _DEPTH


def _liveliest_window(dataset: Dataset, length: int) -> slice:
    """Return the rows of the test window with the most motion of the tip and some contact."""
    tips = trace_landmarks(load_arm(), dataset.test.inputs[:, : len(JOINTS)])[:, -1]
    touching = dataset.test.targets[:, target_columns()["contact_power"]].ravel() > 0
    length = min(length, dataset.rows_per_episode)
    best, best_score = slice(0, length), -1.0
    for start in range(0, len(tips) - length + 1, max(1, length // 4)):
        if start % dataset.rows_per_episode + length > dataset.rows_per_episode:
            continue  # would extend into the next episode
        rows = slice(start, start + length)
        spread = tips[rows].std(0).prod()
        score = spread * (0.08 < touching[rows].mean() < 0.4)
        if score > best_score:
            best, best_score = rows, score
    return best


def draw_traces(
    dataset: Dataset, predictions: Mapping[str, np.ndarray], sample_seconds: float
) -> Figure:
    """Draw the first test episode: simulator and predictions, by label of the arm."""
    columns = target_columns()
    shown = {
        "joint_power": "net joint\npower, W",
        "kinetic_energy": "kinetic\nenergy, J",
        "contact_power": "contact\npower, W",
    }
    truth = dataset.test.targets[: dataset.rows_per_episode]
    seconds = np.arange(len(truth)) * sample_seconds
    figure = new_figure(8.4, 5.2)
    axes = figure.subplots(len(shown), 1, sharex=True)
    for axis, (name, label) in zip(axes, shown.items(), strict=True):
        axis.plot(seconds, truth[:, columns[name]], color="#b5b5b5", lw=4, label="simulator")
        for (arm, values), colour in zip(predictions.items(), (MLP, PRISM), strict=False):
            axis.plot(seconds, values[:, columns[name]], color=colour, lw=1.2, label=arm)
        axis.set_ylabel(label)
        axis.grid(color="#eeeeee", lw=0.8)
    axes[-1].set_xlabel("seconds")
    axes[0].legend(
        frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2
    )
    figure.align_ylabels(axes)
    return figure
