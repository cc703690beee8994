"""Settings of the study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from prism_motor._checks import InputError
from prism_motor._ranges import Checked, Seed, Threads, above, between, length

TUNING_SEED = 0
"""Seed of the learning-rate sweep; the reported seeds are 1, 2, ..."""


@dataclass(frozen=True)
class PhysicsConfig(Checked, section="physics"):
    """Learning physical quantities from positions, velocities and torques."""

    seeds: Annotated[int, between(2, 1000)] = 5
    """Number of reported seeds per arm (at least 2, for the intervals)."""
    arms: tuple[str, ...] = ()
    """Which arms to compare, by name; empty for all."""
    train_episodes: Annotated[int, between(1, 100_000)] = 240
    """Number of training episodes."""
    validation_episodes: Annotated[int, between(1, 100_000)] = 30
    """Number of validation episodes, which choose the learning rate."""
    test_episodes: Annotated[int, between(1, 100_000)] = 40
    """Number of test episodes, used only for reported errors."""
    episode_seconds: Annotated[float, between(0.001, 1000)] = 4.0
    """Length of an episode."""
    sample_seconds: Annotated[float, between(0.001, 1000)] = 0.02
    """Time between recorded states."""
    extrapolation: Annotated[float, above(0, 100)] = 1.5
    """Factor on the velocities and torques of test states in the extrapolation set."""
    data_seed: Seed = 11
    """Seed of the excitation."""
    budget: Annotated[int, between(1, 10**9)] = 16_000
    """Parameters of every arm, within 1 % (twice as many for the larger MLP)."""
    head: Annotated[int, between(1, 8192)] = 64
    """Width of the two hidden layers that follow every front layer."""
    updates: Annotated[int, between(1, 10**9)] = 1600
    """Training updates."""
    batch: Annotated[int, between(1, 1_000_000)] = 256
    """States per update."""
    learning_rates: Annotated[tuple[float, ...], above(0, 100), length(1, 100)] = (
        5e-3,
        1e-2,
        2e-2,
        4e-2,
        8e-2,
    )
    """Peak learning rates of the sweep, the same for every arm."""
    curve_points: Annotated[int, between(1, 10_000)] = 12
    """Number of times the validation error is recorded during training."""
    workers: Threads = 2
    """Number of worker processes, with one thread each."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sample_seconds > self.episode_seconds:
            raise InputError(
                f"physics.sample_seconds must be at most episode_seconds ({self.episode_seconds}), "
                f"got {self.sample_seconds}."
            )

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
