"""Settings shared by every run and every evaluation; domains add their own fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prism_motor._checks import InputError, check_size


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything needed to repeat a training run."""

    kind: str
    """Domain of the run."""
    preset: str
    """Name of the preset the settings came from."""
    arm: str
    """Name of the arm in a comparison."""
    seed: int = 1
    """Seed for all random numbers."""
    updates: int = 1000
    """Total number of training updates."""
    threads: int = 1
    """Simulation and torch threads per process; results depend on it bit for bit."""
    checkpoint_every: int = 100
    """Updates between checkpoints."""
    keep_checkpoints: int = 3
    """Number of most recent checkpoints to keep."""
    plugins: tuple[str, ...] = ()
    """User modules that the run needs."""

    def __post_init__(self) -> None:
        for name in ("updates", "threads", "checkpoint_every", "keep_checkpoints"):
            check_size("run", name, getattr(self, name))
        if not 0 <= self.seed < 2**31:
            raise InputError(f"run: seed must be from 0 to 2147483647, got {self.seed}.")


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """How a trained policy is evaluated."""

    conditions: tuple[str, ...] = ("nominal",)
    """Names of the conditions to evaluate."""
    seeds: tuple[int, ...] = (101,)
    """Evaluation seeds."""
    episodes: int = 20
    """Episodes per seed."""
    threads: int = 1
    """Number of threads to evaluate with."""

    def __post_init__(self) -> None:
        check_unique("conditions", self.conditions)
        check_seeds("seeds", self.seeds)
        for name in ("episodes", "threads"):
            check_size("evaluation", name, getattr(self, name))

    @property
    def pairs(self) -> list[tuple[str, int]]:
        """All (condition, seed) pairs."""
        return [(condition, seed) for condition in self.conditions for seed in self.seeds]


def check_seeds(what: str, seeds: Sequence[int]) -> None:
    """Reject seeds that are missing, negative or repeated."""
    check_unique(what, seeds)
    if any(seed < 0 for seed in seeds):
        raise InputError(f"{what} must not be negative, got {list(seeds)}.")


def check_unique(what: str, values: Sequence[Any]) -> None:
    """Reject an empty list and repeated values."""
    if not values:
        raise InputError(f"{what}: give at least one.")
    twice = [value for value, count in Counter(map(str, values)).items() if count > 1]
    if twice:
        raise InputError(f"{what} must be unique; repeated: {', '.join(twice)}.")
