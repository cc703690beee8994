"""How far a run is, read from its folder alone."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.planned import PlannedRun
from prism_motor.runs import RunError
from prism_motor.runs.checkpoints import checkpoint_steps
from prism_motor.runs.configs import ConfigError


@dataclass(frozen=True)
class RunState:
    """What is done of a run, and what it costs."""

    updates: int
    """Policy updates in the newest checkpoint."""
    total: int
    """Policy updates that are wanted."""
    evaluated: int = 0
    """Evaluations that are done and valid."""
    evaluations: int = 0
    """Evaluations that are wanted."""
    diverged: bool = False
    """Whether training ended with values that are not finite; going on would repeat that."""
    problem: str | None = None
    """Why the folder cannot be used."""

    @property
    def trained(self) -> bool:
        """Whether all updates are done."""
        return self.updates >= self.total

    @property
    def step(self) -> str | None:
        """What comes next: ``train``, ``evaluate`` or nothing."""
        if self.problem or (self.diverged and not self.trained):
            return None
        if not self.trained:
            return "train"
        return "evaluate" if self.evaluated < self.evaluations else None

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.trained and self.evaluated >= self.evaluations and not self.problem

    @property
    def word(self) -> str:
        """The state of the training in one word."""
        if self.problem:
            return "unusable"
        if self.trained:
            return "trained"
        if self.diverged:
            return "diverged"
        return "started" if self.updates else "missing"


def read_state(run: PlannedRun) -> RunState:
    """Read how far a run is; a folder of another config is refused."""
    if run.waiting:
        return RunState(0, run.total, 0, run.evaluations)
    if run.path.exists():
        run.check_config(run.path)
    updates = run.count_updates()
    diverged = bool(checkpoint_steps(run.path / "nonfinite"))
    evaluated, problem = 0, None
    if updates >= run.total:
        try:
            evaluated = run.count_evaluations()
        except (RunError, ConfigError) as error:
            problem = str(error)
    return RunState(updates, run.total, evaluated, run.evaluations, diverged, problem)


def clear_unstarted(path: Path) -> None:
    """Remove a run folder that was cut before its first checkpoint; refuse anything else."""
    known = {"config.json", "provenance.json", "checkpoints", "tensorboard"}
    if not path.exists() or checkpoint_steps(path / "checkpoints"):
        return
    names = {entry.name for entry in path.iterdir()}
    if strange := sorted(name for name in names - known if not name.startswith(".")):
        raise CampaignError(
            f"{path} is in the way: it has no checkpoint but holds {', '.join(strange)}. Move it "
            "away."
        )
    shutil.rmtree(path)


def evaluation_seconds(run: PlannedRun) -> list[float]:
    """Return how long evaluations took, from the times between their files."""
    folder = run.path / "evaluations"
    if not folder.is_dir():
        return []
    times = sorted(file.stat().st_mtime for file in folder.glob("*.json"))
    return [after - before for before, after in pairwise(times)]
