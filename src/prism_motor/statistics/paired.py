"""Comparisons of two arms over the training seeds that both have."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prism_motor._checks import InputError
from prism_motor.statistics.intervals import (
    CONFIDENCE,
    Interval,
    check_values,
    scipy_stats,
    t_interval,
)
from prism_motor.statistics.resampling import RESAMPLES, bootstrap, unless_empty


@dataclass(frozen=True)
class Comparison:
    """How an arm differs from a reference, over common training seeds."""

    difference: float
    """Mean of arm minus reference."""
    sd: float | None
    """Sample standard deviation of the differences; ``None`` for a single seed."""
    interval: Interval | None
    """t interval of the difference; ``None`` for a single seed or equal differences."""
    p_value: float | None
    """Two-sided paired t test; ``None`` with the interval."""
    improvement: float
    """Share of all pairs of a run of the arm and one of the reference in which the arm is better;
    ties count half."""
    improvement_interval: Interval | None
    """Its bootstrap interval."""
    seeds: tuple[int, ...]
    """Training seeds that both have."""
    unpaired: tuple[int, ...]
    """Unused training seeds, which only one of them has."""


def compare(
    arm: Mapping[int, float],
    reference: Mapping[int, float],
    *,
    higher_is_better: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Comparison | None:
    """Compare an arm with a reference, paired by training seed.

    Args:
        arm: One number by training seed.
        reference: The same for the reference.
        higher_is_better: Which direction is an improvement; the difference does not depend on it.
        resamples: Bootstrap samples for the probability of improvement.
        seed: Seed of the resampling.
        confidence: Confidence of the intervals.

    Returns:
        The comparison, or ``None`` without a common seed.
    """
    common = tuple(sorted(arm.keys() & reference.keys()))
    if not common:
        return None
    ours, theirs = [arm[s] for s in common], [reference[s] for s in common]
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    # Equal differences have no interval, so there is nothing to test either.
    interval = t_interval(differences, confidence=confidence)
    p_value = None
    if interval is not None:
        p_value = float(scipy_stats().ttest_1samp(differences, 0.0).pvalue)
    # The probability of improvement is over all pairs, where higher is better.
    if not higher_is_better:
        ours, theirs = [-a for a in ours], [-b for b in theirs]
    chance, chance_interval = probability_of_improvement(
        ours, theirs, resamples=resamples, seed=seed, confidence=confidence
    )
    return Comparison(
        difference=statistics.fmean(differences),
        sd=statistics.stdev(differences) if len(common) > 1 else None,
        interval=interval,
        p_value=p_value,
        improvement=chance,
        improvement_interval=chance_interval,
        seeds=common,
        unpaired=tuple(sorted(arm.keys() ^ reference.keys())),
    )


def probability_of_improvement(
    values: Sequence[float],
    reference: Sequence[float],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> tuple[float, Interval | None]:
    """Return the share of pairs in which a value beats a reference value, and its interval.

    Ties count half, so that 0.5 means no difference; this is the Mann-Whitney statistic over the
    number of pairs.

    Args:
        values: One number per training; higher is better.
        reference: The same for the reference.
        resamples: Bootstrap samples; both groups are resampled separately.
        seed: Seed of the resampling.
        confidence: Confidence of the interval.
    """
    import numpy as np

    check_values(values)
    check_values(reference)
    count = len(values)

    def share(batch: np.ndarray) -> np.ndarray:
        gap = batch[:, :count, None] - batch[:, None, count:]
        return ((np.sign(gap) + 1) / 2).mean(axis=(1, 2))

    everything = np.concatenate([values, reference])[None]
    interval = bootstrap(
        [values, reference], share, resamples=resamples, seed=seed, confidence=confidence
    )
    return float(share(everything)[0]), unless_empty(interval)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values, for a table that makes several claims at once.

    Args:
        p_values: One per claim; untested ones (``None``) do not count and stay ``None``.
    """
    for value in p_values:
        if value is not None and not 0 <= value <= 1:
            raise InputError(f"A p-value must be between 0 and 1, got {value}.")
    tested = sorted((value, index) for index, value in enumerate(p_values) if value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (value, index) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * value))
        adjusted[index] = highest
    return adjusted
