"""Do features know about dynamics that nobody told the policy? The same walks, three conditions.

Every policy walks under each condition from the same initial states and with the same commands.
Samples are matched: the same robots at the same control steps under every condition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from prism_motor._errors import InputError
from prism_motor._extras import missing_extra
from prism_motor.analysis.recording import record
from prism_motor.analysis.rollouts import Rollout
from prism_motor.analysis.subjects import Subject
from prism_motor.analysis.telling_apart import Accuracy, shuffle_labels, tell_apart
from prism_motor.locomotion.conditions import find_condition
from prism_motor.nn.checks import check_size

COMPONENTS = 50
"""Principal components that t-SNE starts from, and that make features of any width comparable."""

PERPLEXITY = 12.0
"""Perplexity of t-SNE, as in the paper."""

SHUFFLES = 5
"""Random exchanges of labels for the control."""

_MOST = 2000
"""Matched samples per condition that are used; neighbours in time hardly differ."""


class NotComparableError(InputError):
    """A policy does not walk well enough to be compared."""


@dataclass(frozen=True)
class EmbedConfig:
    """Conditions, and how many samples."""

    conditions: tuple[str, ...] = ("nominal", "low-friction", "payload")
    """What is told apart."""
    envs: int = 40
    """Robots, the same under every condition."""
    seconds: float = 6.0
    """How long each walks."""
    samples: int = 100
    """Samples per condition in the picture."""
    seed: int = 1000
    """Seed of walks, t-SNE and bootstrap."""

    def __post_init__(self) -> None:
        for condition in self.conditions:
            find_condition(condition)
        if len(set(self.conditions)) < max(2, len(self.conditions)):
            raise InputError(
                f"Give at least two conditions, and each once; got {', '.join(self.conditions)}."
            )
        check_size("embed", "envs", self.envs)
        check_size("embed", "samples", self.samples)
        if self.envs < 5:
            raise InputError(
                f"embed: envs must be at least 5, got {self.envs}: robots are divided into five "
                "parts, and no part may be empty."
            )
        if self.samples * len(self.conditions) <= 3 * PERPLEXITY:
            raise InputError(
                f"embed: {self.samples} samples per condition are too few for a perplexity of "
                f"{PERPLEXITY:g}; give at least 20."
            )
        if self.seconds < 1:
            raise InputError(f"embed: seconds must be at least 1, got {self.seconds}.")
        if self.seed < 0:
            raise InputError(f"embed: seed must not be negative, got {self.seed}.")


@dataclass(frozen=True)
class Samples:
    """Matched samples: entry i of every condition is the same robot at the same step."""

    robots: np.ndarray
    """Which robot, (samples,)."""
    steps: np.ndarray
    """Which control step, (samples,)."""
    features: np.ndarray
    """Features, (conditions, samples, width)."""
    observations: np.ndarray
    """Raw observations, (conditions, samples, inputs)."""

    def thin(self, most: int) -> Samples:
        """Return at most so many of them, evenly."""
        kept = np.linspace(0, len(self.steps) - 1, min(most, len(self.steps))).round().astype(int)
        return Samples(
            self.robots[kept], self.steps[kept], self.features[:, kept], self.observations[:, kept]
        )

    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the condition and the robot of every sample, one condition after the other."""
        conditions, count, _ = self.features.shape
        return np.repeat(np.arange(conditions), count), np.tile(self.robots, conditions)


@dataclass(frozen=True)
class Embedding:
    """What the features of one policy know about the condition."""

    subject: Subject
    """The policy."""
    feature: str
    """Which features: what the conditioner gives, or the first hidden layer without one."""
    width: int
    """How many."""
    samples: int
    """Matched samples per condition behind the accuracies."""
    robots: int
    """Robots that they come from."""
    accuracies: dict[str, Accuracy]
    """By what the classifier sees, see :func:`measure`."""
    shuffled: list[float]
    """Accuracies from the features when the labels are exchanged at random."""
    points: np.ndarray
    """t-SNE of some of the samples, (conditions, points, 2)."""


def embed(
    subject: Subject,
    config: EmbedConfig,
    *,
    threads: int = 1,
    report: Callable[[], None] | None = None,
) -> Embedding:
    """Let a policy walk under every condition and compare its features.

    Args:
        subject: The policy.
        config: Conditions, and how many samples.
        threads: Threads of the simulation; they do not change the result.
        report: Called after every control step, and once after the picture and the accuracies.
    """
    policy = subject.policy
    for condition in config.conditions:
        find_condition(condition).apply(policy.config.task)
    rollouts = [
        record(
            policy, policy.config.task, condition, seed=config.seed, envs=config.envs,
            steps=_steps(subject, config), threads=threads, run=subject.path, report=report,
        )
        for condition in config.conditions
    ]  # fmt: skip
    feature = "conditioner" if "conditioner" in rollouts[0].features else "hidden_1"
    samples = match(rollouts, feature, policy.config.task.observations.actor_frames)
    if len(np.unique(samples.robots)) < 5 or len(samples.steps) < config.samples:
        raise NotComparableError(
            f"only {len(samples.steps)} steps of {len(np.unique(samples.robots))} robots have "
            f"counterparts under all of {', '.join(config.conditions)}, because the others fell; "
            f"{config.samples} steps of 5 robots are needed. Give a policy that walks."
        )
    samples = samples.thin(_MOST)
    points = project(samples.thin(config.samples).features, config.seed)
    found = Embedding(
        subject=subject,
        feature=feature,
        width=samples.features.shape[-1],
        samples=len(samples.steps),
        robots=len(np.unique(samples.robots)),
        accuracies=measure(samples, config.seed),
        shuffled=measure_shuffled(samples, config.seed),
        points=points,
    )
    if report is not None:
        report()
    return found


def count_work(subject: Subject, config: EmbedConfig) -> int:
    """Return how often :func:`embed` reports."""
    return len(config.conditions) * _steps(subject, config) + 1


def _steps(subject: Subject, config: EmbedConfig) -> int:
    return round(config.seconds / subject.policy.config.task.simulation.control_dt)


def match(rollouts: Sequence[Rollout], feature: str, frames: int) -> Samples:
    """Keep the steps that every rollout has of a robot's first episode, with the same command.

    Args:
        rollouts: One a condition, with the same seed.
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
    return Samples(
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


def measure(samples: Samples, seed: int) -> dict[str, Accuracy]:
    """Tell the conditions apart from features and from raw observations, in full and by width."""
    labels, robots = samples.labels()
    found: dict[str, Accuracy] = {}
    for name, values in (("features", samples.features), ("observations", samples.observations)):
        flat = np.concatenate(values)
        found[name] = tell_apart(flat, labels, robots, seed=seed)
        found[f"{name}, {COMPONENTS} components"] = tell_apart(
            flat, labels, robots, seed=seed, components=COMPONENTS
        )
    return found


def measure_shuffled(samples: Samples, seed: int) -> list[float]:
    """Return the accuracies that labels without information give, one a shuffle."""
    labels, robots = samples.labels()
    flat = np.concatenate(samples.features)
    return [
        tell_apart(flat, shuffle_labels(labels, robots, seed + i), robots, seed=seed).value
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
