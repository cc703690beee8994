"""What a domain hands to the mechanism: trainers, evaluators, films and preparations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

State = tuple[dict[str, "Tensor"], dict[str, Any]]
"""Tensors and plain data that training resumes from."""

Key = tuple[Any, ...]
"""What identifies an episode within an evaluation."""


@dataclass(frozen=True)
class Stretch:
    """A part of a run whose updates cost alike, and a smaller run to measure them by."""

    config: Any
    """Settings of the smaller run, or of the run itself."""
    updates: int
    """Updates of this part."""
    scale: float = 1.0
    """How many times the time of a measured update one of the run takes."""
    memory_scale: float = 1.0
    """How many times its memory the run needs."""
    learning_scale: float = 1.0
    """How many times as many gradient steps the run does in as much of the rest; the metrics of a
    measured update name their share of its time, ``time/update``."""
    network_scale: float = 1.0
    """How many times as much the run's networks compute; the metrics name the shares of learning,
    ``time/update``, and of acting, ``time/policy``."""
    told: str = ""
    """What is smaller than in the run, for people: ``256 of 4,096 environments``."""


class Trainer(Protocol):
    """Trains a policy one update at a time, resumable bit for bit."""

    config: Any
    """The run."""
    updates: int
    """Finished updates."""
    seconds: float
    """Time they took."""

    def update(self) -> dict[str, float] | None:
        """Do one update; return a row of metrics when one is due."""
        ...

    def state(self) -> State:
        """Return all that :meth:`restore` needs to resume exactly."""
        ...

    def state_before(self) -> State:
        """Return the state from before the update that has just failed."""
        ...

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Resume from a saved state."""
        ...

    def models(self) -> dict[str, nn.Module]:
        """Return the networks that must agree between processes."""
        ...

    def describe(self, row: Mapping[str, float]) -> str:
        """Describe a row of metrics in one line."""
        ...


class Evaluator(Protocol):
    """Runs episodes of one policy; made once for all conditions and seeds of an evaluation."""

    def steps(self, keys: Sequence[Key]) -> int:
        """Return the largest number of progress steps that some episodes can take."""
        ...

    def run(
        self,
        condition: str,
        seed: int,
        keys: Sequence[Key],
        note: Callable[..., None],
        report: Callable[[], None],
    ) -> None:
        """Run episodes; call ``note`` with each finished one and ``report`` after each step.

        May change torch's thread count; it is restored afterwards.
        """
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class Film(Protocol):
    """A video of a policy, made while it is iterated over."""

    name: str
    """Stem of its file's name, unless another is asked for."""
    rate: float
    """Pictures per second."""

    def __len__(self) -> int:
        """Return how many pictures it has."""
        ...

    def __iter__(self) -> Iterator[np.ndarray]:
        """Make the pictures (height, width, 3) one by one."""
        ...

    def summary(self) -> str:
        """Say what it showed, once it has been made."""
        ...


class Preparation(Protocol):
    """Something that policies need before they can train, made once for all arms of a variant."""

    @property
    def path(self) -> Path:
        """Its folder."""
        ...

    @property
    def seed(self) -> int:
        """Seed of everything random in it."""
        ...

    @property
    def total(self) -> int:
        """How many units it consists of."""
        ...

    @property
    def title(self) -> str:
        """What it is called in tables: ``demonstrations``."""
        ...

    @property
    def verb(self) -> str:
        """How it is made, as a verb: ``record``."""
        ...

    @property
    def unit(self) -> str:
        """What one unit is called: ``demonstration``."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the runs that use it, by dotted key."""
        ...

    def command(self) -> list[str]:
        """Return the arguments of ``prism`` that make the missing part."""
        ...

    def check(self) -> None:
        """Raise if its folder holds something else."""
        ...

    def count_done(self) -> int:
        """Return how many units are done; all of them only once it can be used."""
        ...

    def progress(self) -> tuple[int, float] | None:
        """Return how many units are done and the seconds they took, once known."""
        ...
