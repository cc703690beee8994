"""Settings of the study."""

from __future__ import annotations

from dataclasses import dataclass, replace

from prism_motor._checks import InputError, check_size

TUNING_SEED = 0
"""Seed of the learning-rate sweep; the reported seeds are 1, 2, ..."""

_COUNTS = (
    "train_episodes",
    "validation_episodes",
    "test_episodes",
    "budget",
    "head",
    "updates",
    "batch",
    "curve_points",
    "workers",
)


@dataclass(frozen=True)
class PhysicsConfig:
    """Learning physical quantities from positions, velocities and torques."""

    seeds: int = 5
    """Number of reported seeds per arm (at least 2, for the intervals)."""
    arms: tuple[str, ...] = ()
    """Which arms to compare, by name; empty for all."""
    train_episodes: int = 240
    """Number of training episodes."""
    validation_episodes: int = 30
    """Number of validation episodes, which choose the learning rate."""
    test_episodes: int = 40
    """Number of test episodes, used only for reported errors."""
    episode_seconds: float = 4.0
    """Length of an episode."""
    sample_seconds: float = 0.02
    """Time between recorded states."""
    extrapolation: float = 1.5
    """Factor on the velocities and torques of test states in the extrapolation set."""
    data_seed: int = 11
    """Seed of the excitation."""
    budget: int = 16_000
    """Parameters of every arm, within 1 % (twice as many for the larger MLP)."""
    head: int = 64
    """Width of the two hidden layers that follow every front layer."""
    updates: int = 1600
    """Training updates."""
    batch: int = 256
    """States per update."""
    learning_rates: tuple[float, ...] = (5e-3, 1e-2, 2e-2, 4e-2, 8e-2)
    """Peak learning rates of the sweep, the same for every arm."""
    curve_points: int = 12
    """Number of times the validation error is recorded during training."""
    workers: int = 2
    """Number of worker processes, with one thread each."""

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise InputError(
                f"seeds must be at least 2, got {self.seeds}: an interval needs two values. "
                "5 is the default."
            )
        for name in _COUNTS:
            check_size("physics", name, getattr(self, name))
        if not self.learning_rates or min(self.learning_rates) <= 0:
            raise InputError(
                f"learning_rates must be one or more positive numbers, got {self.learning_rates}."
            )
        if not 0 < self.sample_seconds <= self.episode_seconds:
            raise InputError(
                "sample_seconds must be positive and at most episode_seconds "
                f"({self.episode_seconds}), got {self.sample_seconds}."
            )
        if self.extrapolation <= 0:
            raise InputError(f"extrapolation must be positive, got {self.extrapolation}.")

    @property
    def quick(self) -> bool:
        """Whether this only checks that everything works; its numbers mean nothing."""
        return replace(self, seeds=QUICK.seeds, arms=QUICK.arms, workers=QUICK.workers) == QUICK

    @property
    def reported_seeds(self) -> range:
        """The seeds behind the reported numbers."""
        return range(TUNING_SEED + 1, TUNING_SEED + 1 + self.seeds)


QUICK = PhysicsConfig(
    data_seed=7,
    seeds=2,
    train_episodes=8,
    validation_episodes=2,
    test_episodes=3,
    episode_seconds=2.0,
    updates=150,
    learning_rates=(1e-2, 2e-2),
    curve_points=3,
)
"""A run of seconds that checks that everything works; its numbers mean nothing."""
