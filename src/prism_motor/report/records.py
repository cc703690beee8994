"""What run folders hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_motor.locomotion.config import TrainConfig
from prism_motor.locomotion.evaluation import WalkingEpisode as Episode


@dataclass(frozen=True)
class Evaluation:
    """One file of evaluations/: a policy under one condition and evaluation seed."""

    condition: str
    """Name of the condition."""
    seed: int
    """Evaluation seed."""
    checkpoint: int
    """Update that the policy is of."""
    policy_sha256: str
    """Hash of the policy's weights."""
    protocol: dict[str, int]
    """Environments, and episodes of each."""
    episodes: tuple[Episode, ...]
    """Every episode."""


@dataclass(frozen=True)
class RunRecord:
    """One training run."""

    path: Path
    """The folder."""
    name: str
    """The folder as seen from where the report began."""
    config: TrainConfig
    """How it was trained."""
    config_sha256: str
    """Hash of config.json."""
    provenance: dict[str, Any]
    """Code version, packages, machine and command."""
    updates: int
    """Policy updates that are done and saved."""
    checkpoint_sha256: str | None
    """Hash of the newest checkpoint's tensors; ``None`` if the folder has no checkpoint."""
    metrics: tuple[dict[str, Any], ...]
    """One row an iteration."""
    evaluations: tuple[Evaluation, ...]
    """Those of the newest checkpoint."""
    notes: tuple[str, ...]
    """What was left out, and why."""

    @property
    def finished(self) -> bool:
        """Whether all planned updates are done."""
        return self.updates >= self.config.iterations

    @property
    def budget(self) -> int:
        """Updates that it has had or will have."""
        return max(self.updates, self.config.iterations)

    def episodes(self, condition: str) -> list[Episode]:
        """Return all episodes under a condition."""
        return [e for one in self.evaluations if one.condition == condition for e in one.episodes]


@dataclass(frozen=True)
class Plan:
    """What a campaign.json says there should be."""

    folder: Path
    """The campaign's folder."""
    seeds: dict[str, tuple[int, ...]]
    """Training seeds by name of the arm."""
    variants: int
    """How many times all of that."""

    def note(self, runs: Sequence[RunRecord]) -> str | None:
        """Say how many of the planned runs have begun, unless all have."""
        found = sum(self.covers(run) for run in runs)
        wanted = self.variants * sum(len(seeds) for seeds in self.seeds.values())
        if found >= wanted:
            return None
        return f"{self.folder}: {found} of {wanted} runs of the campaign have begun."

    def covers(self, run: RunRecord) -> bool:
        """Say whether a run is one of the campaign."""
        return run.path.is_relative_to(self.folder)


@dataclass(frozen=True)
class Collection:
    """Everything that was found under a folder."""

    root: Path
    """The folder."""
    runs: tuple[RunRecord, ...]
    """Runs that can be reported, by folder."""
    problems: tuple[str, ...]
    """Folders that look like runs and cannot be read, and other things left out."""
    plans: tuple[Plan, ...]
    """Campaigns."""
