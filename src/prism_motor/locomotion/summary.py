"""Episodes in numbers: means with their spread, survival with its interval."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from prism_motor._columns import align_columns
from prism_motor._errors import InputError
from prism_motor.locomotion.evaluation import WalkingEpisode
from prism_motor.statistics import Interval, wilson

_ROWS = (
    ("episode_return", "return", 1.0, 1),
    ("linear_error", "linear error, m/s", 1.0, 3),
    ("yaw_error", "yaw error, rad/s", 1.0, 3),
    ("speed_ratio", "speed / commanded", 1.0, 2),
    ("swing_apex", "swing apex, cm", 100.0, 1),
    ("double_support", "double support, %", 100.0, 1),
    ("touchdowns", "touchdowns /s and foot", 1.0, 2),
)
"""Rows of the table: field, title, factor, digits."""


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation over the episodes that have a value."""

    mean: float
    sd: float | None
    """``None`` for a single episode."""
    count: int


@dataclass(frozen=True)
class Summary:
    """One condition of one policy. Episodes share that policy: they are no training seeds."""

    episodes: int
    """How many episodes."""
    survived: int
    """How many of them lasted to the time-out."""
    interval: Interval
    """Wilson interval of the survival rate, 95 %."""
    spreads: dict[str, Spread]
    """Spread of every measurement over episodes, by field of :class:`WalkingEpisode`."""


def summarise(episodes: Sequence[WalkingEpisode]) -> Summary:
    """Summarise the episodes of one condition."""
    if not episodes:
        raise InputError("There are no episodes to summarise.")
    survived = sum(episode.survived for episode in episodes)
    spreads = {}
    for field, *_ in _ROWS:
        values = [value for e in episodes if (value := getattr(e, field)) is not None]
        if values:
            sd = statistics.stdev(values) if len(values) > 1 else None
            spreads[field] = Spread(statistics.fmean(values), sd, len(values))
    return Summary(len(episodes), survived, wilson(survived, len(episodes)), spreads)


def table(summaries: dict[str, Summary]) -> str:
    """Return a table of conditions side by side; every figure is mean ± SD over episodes."""
    lines = [["", *summaries]]
    lines.append(["episodes", *(str(s.episodes) for s in summaries.values())])
    lines.append(["survival, %", *(_survival(s) for s in summaries.values())])
    for field, title, factor, digits in _ROWS:
        cells = [_cell(s.spreads.get(field), factor, digits) for s in summaries.values()]
        lines.append([title, *cells])
    return align_columns(lines)


def _survival(summary: Summary) -> str:
    low, high = summary.interval
    rate = summary.survived / summary.episodes
    return f"{100 * rate:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _cell(spread: Spread | None, factor: float, digits: int) -> str:
    if spread is None:
        return "none"
    mean = f"{factor * spread.mean:.{digits}f}"
    return mean if spread.sd is None else f"{mean} ± {factor * spread.sd:.{digits}f}"
