"""Stratified bootstrap, and the interquartile mean it is mostly used for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from prism_motor._checks import InputError
from prism_motor.statistics.intervals import (
    CONFIDENCE,
    Estimate,
    Interval,
    check_confidence,
    check_values,
    scipy_stats,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

RESAMPLES = 5000
"""Default number of bootstrap samples."""

_BATCH_VALUES = 2_000_000
"""Largest number of values held in memory while resampling."""


def bootstrap(
    strata: Sequence[ArrayLike],
    statistic: Callable[[np.ndarray], np.ndarray],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Return the percentile interval of a statistic, resampling every stratum separately.

    Entries are drawn along the first axis of each stratum and must be independent: training seeds
    (stratum: a task), or episodes (as sums over their steps, not as steps).

    Args:
        strata: Arrays (entries, ...) that differ only in the number of entries.
        statistic: Maps a batch (resamples, entries of all strata in order, ...) to (resamples,).
        resamples: Bootstrap samples.
        seed: Seed of the resampling; the same seed gives the same interval.
        confidence: Confidence of the interval.

    Returns:
        The interval, or ``None`` if no stratum has two entries: there is nothing to resample.
    """
    import numpy as np

    check_confidence(confidence)
    if resamples < 1:
        raise InputError(f"resamples must be at least 1, got {resamples}.")
    arrays = [np.asarray(stratum, dtype=float) for stratum in strata]
    if not arrays or any(array.ndim == 0 or len(array) == 0 for array in arrays):
        raise InputError("Every stratum needs at least one entry, and there must be a stratum.")
    if all(len(array) == 1 for array in arrays):
        return None
    generator = np.random.default_rng(seed)
    size = sum(array.size for array in arrays)
    batch = max(1, _BATCH_VALUES // size)
    found = []
    for start in range(0, resamples, batch):
        count = min(batch, resamples - start)
        picks = [generator.integers(len(a), size=(count, len(a))) for a in arrays]
        drawn = np.concatenate([a[p] for a, p in zip(arrays, picks, strict=True)], axis=1)
        found.append(np.asarray(statistic(drawn), dtype=float))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(found), [tail, 1 - tail])
    return Interval(float(low), float(high))


def iqm(values: ArrayLike, axis: int | None = None) -> np.ndarray:
    """Return the interquartile mean: the mean without the lowest and the highest quarter.

    Only whole values are left out, so with fewer than four it is the mean.

    Args:
        values: Any array.
        axis: Along which axis; all of them by default.
    """
    return scipy_stats().trim_mean(values, 0.25, axis=axis)


def iqm_estimate(
    strata: Sequence[Sequence[float]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Return the interquartile mean over training seeds and tasks with its bootstrap interval.

    The interval of a handful of seeds is somewhat too narrow, as with every bootstrap.

    Args:
        strata: One number per training seed for every task (or condition), on a common scale.
        resamples: Bootstrap samples.
        seed: Seed of the resampling.
        confidence: Confidence of the interval.
    """
    import numpy as np

    for stratum in strata:
        check_values(stratum)
    interval = bootstrap(
        strata,
        lambda batch: iqm(batch, axis=1),
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )
    values = np.concatenate([np.asarray(stratum, dtype=float) for stratum in strata])
    sd = float(values.std(ddof=1)) if len(strata) == 1 and len(values) > 1 else None
    return Estimate(float(iqm(values)), sd, unless_empty(interval), len(values))


def unless_empty(interval: Interval | None) -> Interval | None:
    """Return ``None`` for an interval of zero width: equal samples do not mean certainty."""
    if interval is None or math.isclose(*interval, rel_tol=1e-12):
        return None
    return interval
