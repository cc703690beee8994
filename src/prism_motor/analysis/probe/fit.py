"""Linear probes: ordinary least squares, held-out scores and their intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prism_motor._checks import InputError
from prism_motor.statistics import bootstrap

if TYPE_CHECKING:
    from prism_motor.analysis.probe.probes import ProbeTargets

_FOLDS = 5
"""Folds of the cross-validation: each is predicted by a probe fitted on the others."""

_RESAMPLES = 2000
"""Bootstrap samples of an interval."""

_PRECISION = 1e-6
"""Directions with less than this share of the largest spread are rounding noise of float32."""


def folds_by_unit(unit: np.ndarray, seed: int, scope: ProbeTargets) -> np.ndarray:
    """Assign every unit, with all its windows, to one fold; return the fold of every window.

    Args:
        unit: Which unit every window belongs to.
        seed: Seed of the choice.
        scope: What units are.
    """
    names, index = np.unique(unit, return_inverse=True)
    if len(names) < _FOLDS:
        raise InputError(
            f"Probes: {len(names)} {scope.units} have {scope.windows}, at least {_FOLDS} are "
            f"needed to hold some out. {scope.advice}"
        )
    parts = np.random.default_rng(seed).permutation(len(names)) % _FOLDS
    return parts[index.reshape(-1)]


def folds_at_random(windows: int, seed: int) -> np.ndarray:
    """Assign windows to folds regardless of their unit: the split that leaks."""
    return np.random.default_rng(seed).permutation(windows) % _FOLDS


@dataclass(frozen=True)
class Prediction:
    """Targets and held-out predictions, in units of the training folds' standard deviation."""

    truth: np.ndarray
    """(windows, targets)."""
    value: np.ndarray
    """(windows, targets)."""
    rank: int
    """Directions of the features that were used: all independent ones by default."""


def cross_predict(
    features: np.ndarray, targets: np.ndarray, fold: np.ndarray, directions: int | None = None
) -> Prediction:
    """Predict every fold by ordinary least squares fitted on the other folds.

    Features and targets are standardised on the training folds. All probes come from one set of
    moments per fold, so they cost little more than a single fit.

    Args:
        features: (windows, width).
        targets: (windows, targets).
        fold: Which fold every window belongs to, (windows,).
        directions: Use only this many principal directions of the features; ``None`` for all.
    """
    width = features.shape[1]
    # This first scaling only limits rounding errors; each fit has its own below.
    joined = _scaled(np.concatenate([features, targets], axis=1, dtype=np.float64))
    parts = np.unique(fold)
    moments_of = {part: _second_moments(joined[fold == part]) for part in parts}
    total = sum(moments_of.values())
    truth = np.empty_like(targets, dtype=np.float64)
    value, ranks = np.empty_like(truth), []
    for part in parts:
        mean, spread, correlation = _correlation(total - moments_of[part])
        weights, rank = _solve(correlation[:width, :width], correlation[:width, width:], directions)
        rows = fold == part
        standard = (joined[rows] - mean) / spread
        truth[rows], value[rows] = standard[:, width:], standard[:, :width] @ weights
        ranks.append(rank)
    return Prediction(truth, value, min(ranks))


def _scaled(values: np.ndarray) -> np.ndarray:
    """Standardise in place: histories of many windows are large."""
    spread = values.std(0)
    values -= values.mean(0)
    values /= np.where(spread > 0, spread, 1.0)
    return values


def _second_moments(values: np.ndarray) -> np.ndarray:
    """Return the sums of products of all columns, with a constant one in front."""
    with_one = np.concatenate([np.ones((len(values), 1)), values], axis=1)
    return with_one.T @ with_one


def _correlation(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, spread and correlation matrix; constant columns correlate with nothing."""
    mean = sums[0, 1:] / sums[0, 0]
    covariance = sums[1:, 1:] / sums[0, 0] - np.outer(mean, mean)
    spread = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    constant = spread < _PRECISION
    spread = np.where(constant, 1.0, spread)
    correlation = covariance / np.outer(spread, spread)
    correlation[constant] = correlation[:, constant] = 0.0
    return mean, spread, correlation


def _solve(xx: np.ndarray, xy: np.ndarray, directions: int | None) -> tuple[np.ndarray, int]:
    """Solve the normal equations by eigenvalues, without directions that are noise."""
    values, vectors = np.linalg.eigh(xx)
    kept = values > _PRECISION**2 * max(values.max(initial=0.0), 1.0)
    if directions is not None:
        kept[:-directions] = False  # eigenvalues ascend
    basis = vectors[:, kept]
    return basis @ ((basis.T @ xy) / values[kept, None]), int(kept.sum())


Score = Callable[[np.ndarray], np.ndarray]
"""From sums of moments (..., 7) to a score (...)."""


def mean_squared_error(sums: np.ndarray) -> np.ndarray:
    """Return the mean squared error; 1 is that of predicting the training mean."""
    return sums[..., 6] / sums[..., 0]


def pearson(sums: np.ndarray) -> np.ndarray:
    """Return the correlation of prediction and truth; 0 for a constant prediction."""
    n, y, p, yy, pp, yp = np.moveaxis(sums[..., :6], -1, 0)
    variances = np.maximum((yy - y * y / n) * (pp - p * p / n), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = (yp - y * p / n) / np.sqrt(variances)
    return np.where(variances > 1e-18, r, 0.0)


SCORES: dict[str, Score] = {"mse": mean_squared_error, "r": pearson}
"""Scores by name."""


def moments(prediction: Prediction, unit: np.ndarray) -> np.ndarray:
    """Return what all scores are made of, summed over the windows of every unit.

    Args:
        prediction: The prediction.
        unit: Which unit every window belongs to.

    Returns:
        (units, targets, 7): sums of 1, y, p, y^2, p^2, y p and (y - p)^2.
    """
    y, p = prediction.truth, prediction.value
    terms = np.stack([np.ones_like(y), y, p, y * y, p * p, y * p, (y - p) ** 2], axis=-1)
    index = np.unique(unit, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((int(index.max()) + 1, *terms.shape[1:]))
    np.add.at(sums, index, terms)
    return sums


@dataclass(frozen=True)
class Scored:
    """A score with its 95 % interval over units."""

    value: float
    low: float
    high: float


def score(sums: np.ndarray, name: str) -> Scored:
    """Score one target, (units, 7)."""
    return _resampled(sums, SCORES[name])


def gain(sums: np.ndarray, base: np.ndarray, name: str) -> Scored:
    """Return the relative change of a score against a base on the same units, of one target."""
    function = SCORES[name]

    def change(both: np.ndarray) -> np.ndarray:
        before = function(both[..., 1, :])
        return (function(both[..., 0, :]) - before) / before

    return _resampled(np.stack([sums, base], axis=1), change)


def _resampled(sums: np.ndarray, function: Score) -> Scored:
    interval = bootstrap([sums], lambda drawn: function(drawn.sum(1)), resamples=_RESAMPLES, seed=0)
    value = float(function(sums.sum(0)))
    low, high = interval or (value, value)  # no interval if all units have the same score
    return Scored(value, low, high)
