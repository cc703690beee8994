"""Settings shared by every run and every evaluation; domains add their own fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from prism_motor._checks import InputError, check_name
from prism_motor._devices import Device
from prism_motor._ranges import Checked, Count, Seed, Seeds, Threads, between


@dataclass(frozen=True, kw_only=True)
class RunConfig(Checked):
    """Everything needed to repeat a training run."""

    kind: str
    """Domain of the run."""
    preset: str
    """Name of the preset the settings came from."""
    arm: str
    """Name of the arm in a comparison."""
    seed: Seed = 1
    """Seed for all random numbers."""
    updates: Count = 1000
    """Total number of training updates."""
    threads: Threads = 1
    """Simulation and torch threads per process, whatever OMP_NUM_THREADS says; results depend on
    it bit for bit."""
    device: Device = "cpu"
    """Torch device that learns; auto: cuda, else mps, else cpu. Simulations are on the CPU unless
    an engine is chosen."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Arithmetic of the learner's networks; with bf16, weights, optimiser and losses stay fp32."""
    checkpoint_every: Count = 100
    """Updates between checkpoints."""
    keep_checkpoints: Count = 3
    """Number of most recent checkpoints to keep."""
    reported: Count | None = None
    """Update whose checkpoint is kept, evaluated and reported; default, and of shorter runs: the
    last."""
    plugins: tuple[str, ...] = ()
    """User modules that the run needs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("preset", self.preset)
        check_name("arm", self.arm)


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig(Checked, section="evaluation"):
    """How a trained policy is evaluated."""

    conditions: tuple[str, ...] = ("nominal",)
    """Names of the conditions to evaluate."""
    seeds: Seeds = (101,)
    """Evaluation seeds."""
    episodes: Annotated[int, between(1, 100_000)] = 20
    """Episodes per seed."""
    threads: Threads = 1
    """Number of threads to evaluate with."""
    device: Device | None = None
    """Torch device of the policy; default: that of its training, or the CPU where it is missing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unique("conditions", self.conditions)
        check_unique("seeds", self.seeds)

    @property
    def pairs(self) -> list[tuple[str, int]]:
        """All (condition, seed) pairs."""
        return [(condition, seed) for condition in self.conditions for seed in self.seeds]


def check_unique(what: str, values: Sequence[Any]) -> None:
    """Reject an empty list and repeated values."""
    if not values:
        raise InputError(f"{what}: give at least one.")
    twice = [value for value, count in Counter(map(str, values)).items() if count > 1]
    if twice:
        raise InputError(f"{what} must be unique; repeated: {', '.join(twice)}.")
