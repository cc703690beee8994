"""The picture of embedded features: one panel a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prism_motor.analysis.embed import Embedding
from prism_motor.analysis.style import INK, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 4
_LOOKS = {
    "nominal": ("#009E73", "o"),
    "low-friction": ("#0072B2", "^"),
    "payload": ("#D55E00", "s"),
    "pushes": ("#CC79A7", "D"),
    "training": ("#7A7A7A", "v"),
}
"""Colour and marker of every condition; the first three as in the paper."""


def draw_embeddings(found: Sequence[Embedding], conditions: Sequence[str]) -> Figure:
    """Draw the t-SNE of every policy, with how well its conditions are told apart."""
    columns = min(_COLUMNS, len(found))
    rows = -(-len(found) // columns)
    figure = new_figure(max(4.6, 3.7 * columns), 4.25 * rows + 0.45)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, embedding in zip(axes, found, strict=False):
        _draw_panel(axis, embedding, conditions)
    for axis in axes[len(found) :]:
        axis.set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, [label.replace("-", " ") for label in labels], loc="outside lower center",
        ncols=len(labels), frameon=False, markerscale=1.4,
    )  # fmt: skip
    return figure


def _draw_panel(axis: Axes, embedding: Embedding, conditions: Sequence[str]) -> None:
    for condition, points in zip(conditions, embedding.points, strict=True):
        colour, marker = _LOOKS[condition]
        axis.scatter(
            points[:, 0], points[:, 1], s=16, marker=marker, color=colour, alpha=0.75, lw=0,
            label=condition,
        )  # fmt: skip
    subject = embedding.subject
    axis.set_title(f"{subject.arm}, training seed {subject.policy.config.seed}")
    lines = []
    for name, title in (("features", "features"), ("observations", "raw observation")):
        accuracy = embedding.accuracies[name]
        text = f"{title}: {100 * accuracy.value:.0f} %"
        if accuracy.interval is not None:
            low, high = accuracy.interval
            text += f" [{100 * low:.0f}, {100 * high:.0f}]"
        lines.append(text)
    lines.append(f"chance: {100 / len(conditions):.0f} %")
    axis.set_xlabel("told apart linearly from\n" + "\n".join(lines), fontsize=9, color=INK)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal", adjustable="datalim")
    for spine in axis.spines.values():
        spine.set_visible(True)
        spine.set_color("#bbbbbb")
