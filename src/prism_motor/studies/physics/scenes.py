"""Pictures of the arm itself: its motion, and one test episode as the networks see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from prism_motor._figures import new_figure
from prism_motor.studies.physics.arm import JOINTS, LANDMARKS, load_arm, trace_landmarks
from prism_motor.studies.physics.dataset import Dataset
from prism_motor.studies.physics.figures import BLACK, BLUE, GREEN, ORANGE
from prism_motor.studies.physics.targets import target_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SNAPSHOTS = 14
_DEPTH = np.array([0.42, 0.30])
"""Where the y axis points in the oblique drawing."""


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
    axis.plot(*points[:, -1].T, color=GREEN, lw=1.2, alpha=0.8, label="path of the tip", zorder=2)
    chosen = np.linspace(0, len(q) - 1, _SNAPSHOTS).round().astype(int)
    for order, i in enumerate(chosen):
        alpha = 0.12 + 0.88 * (order / (_SNAPSHOTS - 1)) ** 1.6
        axis.plot(
            *points[i].T, "-o", color=BLUE, alpha=alpha, lw=3.2, ms=4.5, solid_capstyle="round",
            zorder=3 + order,
        )  # fmt: skip
    axis.plot(
        *points[touching, -1].T, ".", color=ORANGE, ms=5, label="tip while touching", zorder=40
    )
    for name, at in zip(LANDMARKS[:-1], points[chosen[-1]], strict=False):
        joint = JOINTS[0] + ", " + JOINTS[1] if name == "upper_arm" else _JOINT_AT.get(name)
        if joint:
            axis.annotate(
                joint, at, xytext=(8, 8), textcoords="offset points", fontsize=9, color=BLACK,
                zorder=50,
            )  # fmt: skip
    axis.set_aspect("equal")
    axis.axis("off")
    axis.legend(loc="upper right", frameon=False, fontsize=9)
    return figure


_JOINT_AT = {"forearm": "elbow", "hand": "wrist"}


def _oblique(points: np.ndarray) -> np.ndarray:
    """Project (..., 3) to the page: x to the right, z up, y into the depth."""
    return points[..., [0, 2]] + points[..., [1]] * _DEPTH


def _liveliest_window(dataset: Dataset, length: int) -> slice:
    """Return the rows of the test window in which the tip gets about most and touches at times."""
    tips = trace_landmarks(load_arm(), dataset.test.inputs[:, : len(JOINTS)])[:, -1]
    touching = dataset.test.targets[:, target_columns()["contact_power"]].ravel() > 0
    length = min(length, dataset.rows_per_episode)
    best, best_score = slice(0, length), -1.0
    for start in range(0, len(tips) - length + 1, max(1, length // 4)):
        if start % dataset.rows_per_episode + length > dataset.rows_per_episode:
            continue  # would run into the next episode
        rows = slice(start, start + length)
        spread = tips[rows].std(0).prod()
        score = spread * (0.08 < touching[rows].mean() < 0.4)
        if score > best_score:
            best, best_score = rows, score
    return best


def draw_traces(
    dataset: Dataset, predictions: Mapping[str, np.ndarray], sample_seconds: float
) -> Figure:
    """Draw the first test episode: simulator against predictions, by the arm's label."""
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
        for (arm, values), colour in zip(predictions.items(), (BLACK, BLUE), strict=False):
            axis.plot(seconds, values[:, columns[name]], color=colour, lw=1.2, label=arm)
        axis.set_ylabel(label)
        axis.grid(color="#eeeeee", lw=0.8)
    axes[-1].set_xlabel("seconds")
    axes[0].legend(
        frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2
    )
    figure.align_ylabels(axes)
    return figure
