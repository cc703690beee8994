"""Episodes in numbers: success with its interval, and how smoothly and exactly the hand moved."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prism_motor._checks import InputError
from prism_motor._console import text_table
from prism_motor.statistics import Interval, wilson

if TYPE_CHECKING:
    from prism_motor.manipulation.rollout import HandlingOutcome

MEASURES = (
    ("steps", "steps", 1.0, 0),
    ("smoothness", "smoothness", 1.0, 4),
    ("position_error", "position error, mm", 1000.0, 1),
    ("orientation_error", "orientation error, rad", 1.0, 4),
)
"""What is averaged over episodes: field of :class:`HandlingOutcome`, title, factor, digits."""


@dataclass(frozen=True)
class HandlingSummary:
    """One condition of one policy. Episodes share that policy: they are no training seeds."""

    episodes: int
    """How many episodes."""
    successes: int
    """How many of them solved the task."""
    interval: Interval
    """Wilson interval of the success rate, 95 %."""
    means: dict[str, float]
    """Means over all episodes, by field of :class:`HandlingOutcome`."""
    means_of_successes: dict[str, float] | None
    """Means over episodes that solved the task; none if there are none."""


def summarise(outcomes: Sequence[HandlingOutcome]) -> HandlingSummary:
    """Summarise the episodes of one condition."""
    if not outcomes:
        raise InputError("There are no episodes to summarise.")
    solved = [outcome for outcome in outcomes if outcome.success]
    return HandlingSummary(
        episodes=len(outcomes),
        successes=len(solved),
        interval=wilson(len(solved), len(outcomes)),
        means=_means(outcomes),
        means_of_successes=_means(solved) if solved else None,
    )


def _means(outcomes: Sequence[HandlingOutcome]) -> dict[str, float]:
    return {
        field: statistics.fmean(getattr(outcome, field) for outcome in outcomes)
        for field, *_ in MEASURES
    }


def summary_table(summaries: dict[str, HandlingSummary]) -> str:
    """Return a table of conditions side by side."""
    lines = [["", *summaries]]
    lines.append(["episodes", *(str(s.episodes) for s in summaries.values())])
    lines.append(["success, %", *(_success(s) for s in summaries.values())])
    for field, title, factor, digits in MEASURES:
        for which, all_of in (("all episodes", True), ("successful", False)):
            cells = []
            for summary in summaries.values():
                means = summary.means if all_of else summary.means_of_successes
                cells.append("none" if means is None else f"{factor * means[field]:.{digits}f}")
            lines.append([f"{title} ({which})", *cells])
    return text_table(lines)


def _success(summary: HandlingSummary) -> str:
    low, high = summary.interval
    rate = summary.successes / summary.episodes
    return f"{100 * rate:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
