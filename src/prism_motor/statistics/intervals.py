"""Means and rates with their intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra

CONFIDENCE = 0.95
"""Default confidence of intervals."""


class Interval(NamedTuple):
    """From low to high, both included."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Return whether a value lies inside."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Estimate:
    """An estimate over training seeds."""

    centre: float
    """Mean, or interquartile mean."""
    sd: float | None
    """Sample standard deviation; ``None`` for a single seed and over several tasks."""
    interval: Interval | None
    """Interval of the centre; ``None`` if the seeds do not show how much they vary."""
    count: int
    """Number of values."""


def estimate(values: Sequence[float], *, confidence: float = CONFIDENCE) -> Estimate:
    """Return mean, sample SD and t interval over training seeds.

    Args:
        values: One number per training seed.
        confidence: Confidence of the interval.
    """
    check_values(values)
    sd = statistics.stdev(values) if len(values) > 1 else None
    interval = t_interval(values, confidence=confidence)
    return Estimate(statistics.fmean(values), sd, interval, len(values))


def geometric_estimate(values: Sequence[float], *, confidence: float = CONFIDENCE) -> Estimate:
    """Return the geometric mean over training seeds and the t interval of the logarithms.

    Errors are positive and differ by factors, so their logarithms are closer to normal.

    Args:
        values: One positive number per training seed; zeros count as 1e-12.
        confidence: Confidence of the interval.
    """
    found = estimate([math.log(max(value, 1e-12)) for value in values], confidence=confidence)
    interval = None if found.interval is None else Interval(*map(math.exp, found.interval))
    return Estimate(math.exp(found.centre), None, interval, found.count)


def t_interval(values: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the interval of a mean by Student's t.

    A single value has none, and neither do equal values: if five seeds survived every episode, that
    does not make the sixth certain.

    Args:
        values: Independent values.
        confidence: Confidence of the interval.
    """
    check_values(values)
    check_confidence(confidence)
    if len(values) < 2 or math.isclose(min(values), max(values), rel_tol=1e-12):
        return None
    mean, sd = statistics.fmean(values), statistics.stdev(values)
    quantile = float(scipy_stats().t.ppf((1 + confidence) / 2, len(values) - 1))
    half = quantile * sd / math.sqrt(len(values))
    return Interval(mean - half, mean + half)


def wilson(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Return the Wilson interval of a rate.

    Args:
        successes: Number of successes.
        trials: Number of trials, at least 1.
        confidence: Confidence of the interval.
    """
    return _rate_interval(successes, trials, confidence, "wilson")


def clopper_pearson(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Return the exact interval of a rate, which is never too narrow and often too wide.

    Args:
        successes: Number of successes.
        trials: Number of trials, at least 1.
        confidence: Confidence of the interval.
    """
    return _rate_interval(successes, trials, confidence, "exact")


def _rate_interval(successes: int, trials: int, confidence: float, method: str) -> Interval:
    check_confidence(confidence)
    check_rate(successes, trials)
    test = scipy_stats().binomtest(successes, trials)
    interval = test.proportion_ci(confidence_level=confidence, method=method)
    return Interval(float(interval.low), float(interval.high))


def check_rate(successes: int, trials: int) -> None:
    """Reject counts that are no rate."""
    if not 0 <= successes <= trials or trials < 1:
        raise InputError(
            f"A rate needs at least one trial and no more successes than trials, "
            f"got {successes} of {trials}."
        )


def check_values(values: Sequence[float]) -> None:
    """Reject an empty sequence and values that are not finite."""
    if len(values) == 0:
        raise InputError("At least one value is needed.")
    if not all(math.isfinite(value) for value in values):
        raise InputError(f"Values must be finite, got {list(values)}.")


def check_confidence(confidence: float) -> None:
    """Reject what is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence}.")


def scipy_stats() -> Any:
    """Return ``scipy.stats``, which takes a second to import."""
    try:
        from scipy import stats
    except ImportError as error:
        raise missing_extra("prism_motor.statistics", "locomotion", error) from error
    return stats
