"""Episodes in numbers: means with their spread, survival with its interval."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prism_motor._checks import InputError
from prism_motor.statistics import Interval, wilson

if TYPE_CHECKING:
    from prism_motor.locomotion.evaluation import WalkingEpisode

_FIELDS = (
    "episode_return",
    "linear_error",
    "yaw_error",
    "speed_ratio",
    "swing_apex",
    "double_support",
    "touchdowns",
)
"""What is summarised."""


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
    for field in _FIELDS:
        values = [value for e in episodes if (value := getattr(e, field)) is not None]
        if values:
            sd = statistics.stdev(values) if len(values) > 1 else None
            spreads[field] = Spread(statistics.fmean(values), sd, len(values))
    return Summary(len(episodes), survived, wilson(survived, len(episodes)), spreads)
