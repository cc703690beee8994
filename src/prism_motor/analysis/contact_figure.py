"""Figures of contact: force and speed around first contact, impulse and power over an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from prism_motor._figures import BLUE, INK, ORANGE, PALE, new_figure
from prism_motor.analysis.contact_episodes import (
    SHOWN,
    ContactEpisode,
    ContactRecord,
    aligned,
    mechanics,
)
from prism_motor.analysis.subjects import by_arm
from prism_motor.arms import arm_colours
from prism_motor.manipulation.contact import AFTER, BEFORE, THRESHOLD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from prism_motor.manipulation.environment import Image

FORCE, SPEED = ORANGE, BLUE
"""Orange and blue, as in the paper."""

_FRAME = "#F0C000"
"""Yellow, around the image of the contact."""

_MOTION = 40
"""Change of a colour value, out of 255, that exceeds the renderer's noise."""

_WIDTH = 3.6
"""Inches per arm."""


def draw_contacts(records: Sequence[ContactRecord], title: str) -> Figure:
    """Draw one column per arm: images on top, force (orange) and speed (blue) below.

    Lines are means over the episodes with contact, bands reach from the 10th to the 90th
    percentile; every arm has the same axes.

    Args:
        records: The policies.
        title: What they do.
    """
    arms = by_arm(records)
    figure = new_figure(_WIDTH * len(arms) + 0.8, 4.7)
    parts = figure.subfigures(2, 1, height_ratios=[_WIDTH / 3 + 0.3, 3.1], squeeze=False)
    top, bottom = parts[:, 0]
    images = top.subplots(1, len(SHOWN) * len(arms), squeeze=False)[0]
    axes = bottom.subplots(1, len(arms), squeeze=False, sharey=True)[0]
    speeds = [axis.twinx() for axis in axes]
    for i, (arm, group) in enumerate(arms.items()):
        _show(images[len(SHOWN) * i : len(SHOWN) * (i + 1)], group)
        axes[i].set_title(_heading(arm, group), fontsize=10)
        _draw(axes[i], aligned(group, "largest_force"), group, FORCE)
        _draw(speeds[i], aligned(group, "speed"), group, SPEED)
        axes[i].axvline(0, color=INK, lw=0.8, ls=":")
        axes[i].set_xlabel(f"time from first contact ({THRESHOLD:g} N), s")
        axes[i].grid(axis="y", color=PALE, lw=0.8)
        axes[i].tick_params(axis="y", colors=FORCE)
        speeds[i].tick_params(axis="y", colors=SPEED, labelright=i == len(arms) - 1)
        speeds[i].sharey(speeds[0])
        speeds[i].spines["right"].set_visible(True)
    axes[0].set_ylim(bottom=0)
    speeds[0].set_ylim(bottom=0)
    axes[0].set_ylabel("contact force $F_c$, N", color=FORCE)
    speeds[-1].set_ylabel("hand speed $v_{EEF}$, m/s", color=SPEED)
    figure.suptitle(title, fontsize=11)
    return figure


def draw_mechanics(episodes: Mapping[str, ContactEpisode], title: str) -> Figure:
    """Draw impulse and power of contact over one whole episode of each arm.

    Args:
        episodes: By arm, all from the same initial state.
        title: What they do.
    """
    colours = arm_colours(episodes)
    panels = (
        r"(c) accumulated contact impulse  $J_c(t)=\int_0^t F_c\,d\tau$, N s",
        r"(d) contact power  $P_c=F_c\,\|v_{EEF}\|$, W",
    )
    figure = new_figure(10.5, 3.6)
    axes = figure.subplots(1, 2, sharex=True)
    for axis, name in zip(axes, panels, strict=True):
        axis.set_title(name, loc="left", fontsize=10)
        axis.set_xlabel("time since the start, s")
        axis.grid(color=PALE, lw=0.8)
    for arm, episode in episodes.items():
        trace, contact = episode.trace, episode.contact
        label = f"{arm} ({'solved' if episode.outcome.success else 'not solved'})"
        for axis, values in zip(axes, mechanics(trace), strict=True):
            axis.plot(trace.time, values, color=colours[arm], lw=1.5, label=label)
            if contact is not None:
                at = trace.time[contact.step], values[contact.step]
                axis.plot(
                    *at,
                    "o",
                    color=colours[arm],
                    ms=5,
                    mec="white",
                    mew=0.8,
                    zorder=3,
                    clip_on=False,
                )
    for axis in axes:
        axis.set_ylim(bottom=0)
        axis.set_xlim(left=0)
    figure.suptitle(f"{title}; dots: first contact ({THRESHOLD:g} N)", fontsize=11)
    handles, labels = axes[0].get_legend_handles_labels()
    columns = min(4, len(labels))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _heading(arm: str, group: Sequence[ContactRecord]) -> str:
    episodes = [one for record in group for one in record.episodes]
    touched = sum(one.contact is not None for one in episodes)
    solved = sum(one.outcome.success for one in episodes)
    return f"{arm}\n{solved} of {len(episodes)} solved, {touched} with contact"


def _show(axes: np.ndarray, group: Sequence[ContactRecord]) -> None:
    """Show the images of the arm's first policy that has any; the contact's is framed."""
    from matplotlib.patches import Rectangle

    images = next((record.images for record in group if record.images), ())
    rows, columns = crop(images) if images else (slice(None), slice(None))
    dt = group[0].episodes[0].trace.control_seconds
    for i, axis in enumerate(axes):
        axis.set_axis_off()
        if i < len(images):
            axis.imshow(images[i][rows, columns])
            name = f"{SHOWN[i] * dt:+.1f} s"
            if SHOWN[i] == 0:
                name = "contact"
                frame = axis.add_patch(Rectangle((0, 0), 1, 1, transform=axis.transAxes))
                frame.set(fill=False, edgecolor=_FRAME, linewidth=4)
            axis.set_title(name, fontsize=9)


def crop(images: Sequence[Image]) -> tuple[slice, slice]:
    """Return the rows and columns of a square around what moves, half an image wide or more."""
    stack = np.stack(images).astype(np.int16)
    moved = (stack.max(0) - stack.min(0)).max(-1) > _MOTION
    height, width = moved.shape
    if not moved.any():
        return slice(0, height), slice(0, width)
    ends = [np.flatnonzero(moved.any(axis))[[0, -1]] for axis in (1, 0)]
    reach = max(int(last - first) for first, last in ends)
    side = min(max(int(1.2 * reach), height // 2), height, width)
    starts = [
        min(max(int(first + last - side) // 2, 0), size - side)
        for (first, last), size in zip(ends, (height, width), strict=True)
    ]
    return slice(starts[0], starts[0] + side), slice(starts[1], starts[1] + side)


def _draw(axis: Axes, values: np.ndarray, group: Sequence[ContactRecord], colour: str) -> None:
    """Draw the mean over episodes and its band; steps that no episode has are left out."""
    known = np.isfinite(values).any(0) if len(values) else np.zeros(0, bool)
    if not known.any():
        return
    time = np.arange(-BEFORE, AFTER + 1)[known] * group[0].episodes[0].trace.control_seconds
    low, high = np.nanquantile(values[:, known], [0.1, 0.9], axis=0)
    axis.fill_between(time, low, high, color=colour, alpha=0.18, lw=0)
    axis.plot(time, np.nanmean(values[:, known], axis=0), color=colour, lw=1.8)
