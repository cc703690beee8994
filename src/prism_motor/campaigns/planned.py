"""One piece of a campaign's work, whatever is learned in it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from prism_motor.campaigns.config import CampaignError
from prism_motor.runs.checkpoints import checkpoint_steps
from prism_motor.runs.configs import find_differences

Settings = dict[str, Any]
"""Overrides by dotted key."""


@dataclass(frozen=True)
class PlannedRun(ABC):
    """One run folder as the campaign wants it."""

    path: Path
    """The run folder."""
    log: Path
    """Where the output of its jobs goes."""
    variant: str
    """Name of the variant, empty without variants."""
    arm: str
    """Name of the arm."""
    seed: int
    """Training seed."""

    setting: Settings | None = field(default=None, kw_only=True)
    """What a tuning run tries; ``None`` for all others."""
    waiting: bool = field(default=False, kw_only=True)
    """Whether it cannot start yet, because something that comes before it is not done."""

    verb: ClassVar[str] = "train"
    """What its first step does."""
    unit: ClassVar[str] = "update"
    """What it counts."""

    @property
    def title(self) -> str:
        """Name for people: the folder inside the campaign's."""
        return "/".join(self.log.with_suffix("").parts[self.log.parts.index("logs") + 1 :])

    @property
    @abstractmethod
    def total(self) -> int:
        """Updates that are wanted."""

    @property
    def evaluations(self) -> int:
        """Evaluations that are wanted."""
        return 0

    @abstractmethod
    def train_command(self, resume: bool) -> list[str]:
        """Return the command that trains the run, or goes on with it."""

    def evaluate_command(self) -> list[str]:
        """Return the command that does the evaluations that are missing."""
        raise NotImplementedError(f"{self.title} is not evaluated.")

    @abstractmethod
    def check_config(self, path: Path) -> None:
        """Refuse a folder that is not of the planned settings."""

    def count_evaluations(self) -> int:
        """Return how many of the evaluations are done and valid."""
        return 0

    def count_updates(self) -> int:
        """Return the updates that are done and saved."""
        return max(checkpoint_steps(self.path / "checkpoints"), default=0)

    def live_updates(self) -> tuple[int, float] | None:
        """Return (updates, seconds) of the last line of the metrics."""
        try:
            with (self.path / "metrics.jsonl").open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - 8192))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return None
        for line in reversed(lines):
            try:
                row = json.loads(line)
                return int(row["iteration"]), float(row["seconds"])
            except (ValueError, KeyError, TypeError):
                continue
        return None

    def guess_evaluation(self, update: float) -> float:
        """Guess the seconds of an evaluation from those of an update, before one was measured."""
        return 0.0


def refuse_differences(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise if a run has other settings than the campaign wants."""
    differences = find_differences(found, wanted)
    if differences:
        listed = "; ".join(
            f"{key} is {was!r} there and {now!r} in the campaign"
            for key, (was, now) in differences.items()
        )
        raise CampaignError(
            f"{path} holds a run with other settings: {listed}. Change the campaign back, or "
            "use another folder (--out), or move the run away."
        )
