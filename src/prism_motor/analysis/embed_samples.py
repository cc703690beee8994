"""Matched samples of a policy's features under several conditions, and how well these separate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._extras import missing_extra
from prism_motor.statistics import Interval, bootstrap

if TYPE_CHECKING:
    from prism_motor.analysis.rollouts import Rollout

COMPONENTS = 50
"""Principal components that t-SNE starts from, and that make features of any width comparable."""

PERPLEXITY = 12.0
"""Perplexity of t-SNE, as in the paper."""

SHUFFLES = 5
"""Label shuffles for the control."""

FOLDS = 5
"""Folds that the robots are divided into."""


@dataclass(frozen=True)
class MatchedSamples:
    """Matched samples: entry i of every condition is the same robot at the same step."""

    robots: np.ndarray
    """Robot of each sample, (samples,)."""
    steps: np.ndarray
    """Control step of each sample, (samples,)."""
    features: np.ndarray
    """Features, (conditions, samples, width)."""
    observations: np.ndarray
    """Raw observations, (conditions, samples, inputs)."""

    def thin(self, most: int) -> MatchedSamples:
        """Return at most ``most`` of them, evenly spaced."""
        kept = np.linspace(0, len(self.steps) - 1, min(most, len(self.steps))).round().astype(int)
        return MatchedSamples(
            self.robots[kept], self.steps[kept], self.features[:, kept], self.observations[:, kept]
        )

    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the condition and the robot of every sample, one condition after the other."""
        conditions, count, _ = self.features.shape
        return np.repeat(np.arange(conditions), count), np.tile(self.robots, conditions)


def match(rollouts: Sequence[Rollout], feature: str, frames: int) -> MatchedSamples:
    """Keep the steps of each robot's first episode that all rollouts share, command included.

    Args:
        rollouts: One per condition, with the same seed.
        feature: Name of the features.
        frames: Steps at the beginning that are left out because the history is not full yet.
    """
    tables = [_first_episodes(rollout, frames) for rollout in rollouts]
    common = sorted(set.intersection(*(set(table) for table in tables)))
    rows = np.array([[table[key] for key in common] for table in tables], dtype=int)
    planar = np.stack([r.commands.values[i, :2] for r, i in zip(rollouts, rows, strict=True)])
    same = np.isclose(planar, planar[:1]).all(axis=(0, 2))
    rows, keys = rows[:, same], np.array(common, dtype=int).reshape(-1, 2)[same]
    pairs = list(zip(rollouts, rows, strict=True))
    return MatchedSamples(
        robots=keys[:, 0],
        steps=keys[:, 1],
        features=np.stack([rollout.features[feature][index] for rollout, index in pairs]),
        observations=np.stack([rollout.observations.values[index] for rollout, index in pairs]),
    )


def _first_episodes(rollout: Rollout, frames: int) -> dict[tuple[int, int], int]:
    """Return the row of every (robot, step) of the first episodes."""
    first = {}
    for robot, episode in zip(rollout.environment, rollout.episode, strict=True):
        first[robot] = min(first.get(robot, episode), episode)
    return {
        (int(robot), int(step)): row
        for row, (robot, episode, step) in enumerate(
            zip(rollout.environment, rollout.episode, rollout.step, strict=True)
        )
        if episode == first[robot] and step >= frames
    }


@dataclass(frozen=True)
class Accuracy:
    """Cross-validated accuracy of a linear classifier."""

    value: float
    """Share of samples classified correctly."""
    interval: Interval | None
    """95 % interval, bootstrapped over robots."""
    confusion: np.ndarray
    """Share of each condition (row) classified as each condition (column)."""


def classify(
    features: np.ndarray,
    labels: np.ndarray,
    robots: np.ndarray,
    *,
    seed: int,
    components: int | None = None,
) -> Accuracy:
    """Predict the condition of every sample with a classifier that never saw its robot.

    Linear discriminants (with the covariance shrunk by Ledoit and Wolf) on features standardised
    on the training robots. Samples of one robot resemble each other, so the interval resamples
    robots; it covers other robots under this policy, not other training runs.

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
    """Shuffle the conditions of every robot, as a control without information.

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


def measure(samples: MatchedSamples, seed: int) -> dict[str, Accuracy]:
    """Classify by features and by raw observations, in full and at equal width."""
    labels, robots = samples.labels()
    found: dict[str, Accuracy] = {}
    for name, values in (("features", samples.features), ("observations", samples.observations)):
        flat = np.concatenate(values)
        found[name] = classify(flat, labels, robots, seed=seed)
        found[f"{name}, {COMPONENTS} components"] = classify(
            flat, labels, robots, seed=seed, components=COMPONENTS
        )
    return found


def measure_shuffled(samples: MatchedSamples, seed: int) -> list[float]:
    """Return the accuracies with uninformative labels, one per shuffle."""
    labels, robots = samples.labels()
    flat = np.concatenate(samples.features)
    return [
        classify(flat, shuffle_labels(labels, robots, seed + i), robots, seed=seed).value
        for i in range(SHUFFLES)
    ]


def project(features: np.ndarray, seed: int) -> np.ndarray:
    """Return the t-SNE of features, (conditions, points, width) -> (conditions, points, 2)."""
    try:
        from sklearn.decomposition import PCA
        from sklearn.manifold import TSNE
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise missing_extra("prism_motor.analysis", "analysis", error) from error
    conditions, count, width = features.shape
    values = StandardScaler().fit_transform(features.reshape(-1, width).astype(np.float64))
    components = min(COMPONENTS, width, len(values))
    values = PCA(components, svd_solver="full").fit_transform(values)
    plane = TSNE(perplexity=PERPLEXITY, init="pca", random_state=seed).fit_transform(values)
    return plane.reshape(conditions, count, 2)
