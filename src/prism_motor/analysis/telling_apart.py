"""How well conditions can be told apart from features: a number that a picture cannot give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prism_motor._extras import missing_extra
from prism_motor.statistics import Interval, bootstrap

FOLDS = 5
"""Parts that the robots are divided into."""


@dataclass(frozen=True)
class Accuracy:
    """Cross-validated accuracy of a linear classifier."""

    value: float
    """Share of the samples that it assigns to their condition."""
    interval: Interval | None
    """95 % interval, bootstrapped over robots."""
    confusion: np.ndarray
    """Shares of each condition (row) that were taken for each (column)."""


def tell_apart(
    features: np.ndarray,
    labels: np.ndarray,
    robots: np.ndarray,
    *,
    seed: int,
    components: int | None = None,
) -> Accuracy:
    """Predict the condition of every sample by a classifier that never saw its robot.

    Linear discriminants (with the covariance shrunk by Ledoit and Wolf) on features standardised
    on the training robots. Samples of one robot resemble each other, so the interval resamples
    robots; it speaks of other robots under this policy, not of other trainings.

    Args:
        features: (samples, width).
        labels: Which condition, from 0, (samples,).
        robots: Which robot, (samples,); at least two.
        seed: Seed of the bootstrap.
        components: Reduce the features to this many principal components first.
    """
    classifier = _classifier(components, features.shape[1])
    guesses = np.empty_like(labels)
    fold = np.unique(robots, return_inverse=True)[1].reshape(-1) % FOLDS
    for number in np.unique(fold):
        held_out = fold == number
        classifier.fit(features[~held_out], labels[~held_out])
        guesses[held_out] = classifier.predict(features[held_out])
    right = guesses == labels
    counts = np.array([[right[robots == r].sum(), (robots == r).sum()] for r in np.unique(robots)])
    interval = bootstrap(
        [counts], lambda batch: batch[..., 0].sum(1) / batch[..., 1].sum(1), seed=seed
    )
    classes = range(int(labels.max()) + 1)
    confusion = np.array([[np.mean(guesses[labels == a] == b) for b in classes] for a in classes])
    return Accuracy(float(right.mean()), interval, confusion)


def shuffle_labels(labels: np.ndarray, robots: np.ndarray, seed: int) -> np.ndarray:
    """Exchange the conditions of every robot at random, as a control without information.

    All samples of a robot under one condition get the same new label, so that the control is as
    coherent in time as the real labels are.
    """
    generator = np.random.default_rng(seed)
    shuffled = labels.copy()
    classes = int(labels.max()) + 1
    for robot in np.unique(robots):
        mine = robots == robot
        shuffled[mine] = generator.permutation(classes)[labels[mine]]
    return shuffled


def _classifier(components: int | None, width: int) -> Any:
    try:
        from sklearn.decomposition import PCA
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise missing_extra("prism_motor.analysis", "analysis", error) from error
    steps: list[Any] = [StandardScaler()]
    if components is not None and components < width:
        steps.append(PCA(components, svd_solver="full"))
    return make_pipeline(*steps, LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"))
