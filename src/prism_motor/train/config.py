"""What every run and every evaluation has, whatever is learned; domains add their own fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prism_motor._checks import InputError, check_size


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A training run, enough to repeat it."""

    kind: str
    """Domain of the run."""
    preset: str
    """Name of the preset that the settings came from."""
    arm: str
    """Name of the arm of a comparison."""
    seed: int = 1
    """Seed of everything random."""
    updates: int = 1000
    """Training updates in all."""
    threads: int = 1
    """Threads of simulation and torch in each process; part of what makes a run exact."""
    checkpoint_every: int = 100
    """Updates between checkpoints."""
    keep_checkpoints: int = 3
    """How many of the newest checkpoints are kept."""
    plugins: tuple[str, ...] = ()
    """Modules of the user that the run needs."""

    def __post_init__(self) -> None:
        for name in ("updates", "threads", "checkpoint_every", "keep_checkpoints"):
            check_size("run", name, getattr(self, name))
        if not 0 <= self.seed < 2**31:
            raise InputError(f"run: seed must be from 0 to 2147483647, got {self.seed}.")


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """How a trained policy is evaluated."""

    conditions: tuple[str, ...] = ("nominal",)
    """Names of the conditions."""
    seeds: tuple[int, ...] = (101,)
    """Evaluation seeds."""
    episodes: int = 20
    """Episodes per seed."""
    threads: int = 1
    """Threads of the evaluation."""

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
    """Refuse seeds that are missing, negative or there twice."""
    check_unique(what, seeds)
    if any(seed < 0 for seed in seeds):
        raise InputError(f"{what} must not be negative, got {list(seeds)}.")


def check_unique(what: str, values: Sequence[Any]) -> None:
    """Refuse an empty list and values that are there twice."""
    if not values:
        raise InputError(f"{what}: give at least one.")
    twice = [value for value, count in Counter(map(str, values)).items() if count > 1]
    if twice:
        raise InputError(f"{what} must differ; twice: {', '.join(twice)}.")
