"""How far a run is, read from its folder alone."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from prism.campaigns.config import CampaignError
from prism.campaigns.plan import PlannedRun
from prism.learn.config import TrainConfig
from prism.learn.evaluations import Evaluations
from prism.runs import RunError, from_dict, to_dict
from prism.runs.checkpoints import checkpoint_steps
from prism.runs.configs import ConfigError, find_differences


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
    evaluations = 0
    if run.evaluation is not None:
        evaluations = len(run.evaluation.conditions) * len(run.evaluation.seeds)
    total = run.config.iterations
    if run.waiting or not run.path.exists():
        return RunState(0, total, 0, evaluations)
    check_config(run, run.path)
    steps = checkpoint_steps(run.path / "checkpoints")
    updates = steps[-1] if steps else 0
    diverged = bool(checkpoint_steps(run.path / "nonfinite"))
    evaluated, problem = 0, None
    if updates >= total and run.evaluation is not None:
        try:
            evaluated = _count_evaluations(run)
        except (RunError, ConfigError) as error:
            problem = str(error)
    return RunState(updates, total, evaluated, evaluations, diverged, problem)


def check_config(run: PlannedRun, path: Path) -> None:
    """Refuse a run folder that is not of the planned config."""
    file = path / "config.json"
    if not file.is_file():
        return  # cut before it began, or no run: ``clear_unstarted`` looks closer
    try:
        found = to_dict(from_dict(TrainConfig, json.loads(file.read_text()), str(file)))
    except ValueError as error:
        raise CampaignError(f"{file} is not of this version of prism: {error}") from error
    differences = find_differences(found, json.loads(json.dumps(to_dict(run.config))))
    if differences:
        listed = "; ".join(
            f"{key} is {was!r} there and {now!r} in the campaign"
            for key, (was, now) in differences.items()
        )
        raise CampaignError(
            f"{path} holds a run with other settings: {listed}. Change the campaign back, or "
            "use another folder (--out), or move the run away."
        )


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


def live_updates(run: PlannedRun) -> tuple[int, float] | None:
    """Return (updates, seconds) of the last line of a run's metrics."""
    try:
        with (run.path / "metrics.jsonl").open("rb") as file:
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


def evaluation_seconds(run: PlannedRun) -> list[float]:
    """Return how long evaluations took, from the times between their files."""
    folder = run.path / "evaluations"
    if not folder.is_dir():
        return []
    times = sorted(file.stat().st_mtime for file in folder.glob("*.json"))
    return [after - before for before, after in pairwise(times)]


def _count_evaluations(run: PlannedRun) -> int:
    assert run.evaluation is not None
    wanted = run.evaluation
    folder = run.path / "evaluations"
    if not folder.is_dir():
        return 0
    stored = Evaluations(run.path, wanted.protocol(), run.config.iterations)
    pairs = [(condition, seed) for condition in wanted.conditions for seed in wanted.seeds]
    return sum(stored.read(*pair) is not None for pair in pairs)
