"""One piece of a campaign's work: its folder, settings and commands, and how far it is."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_motor._checks import PrismError
from prism_motor.campaigns.config import CampaignError
from prism_motor.domains import DOMAINS, Domain, Preparation
from prism_motor.runs import Run, to_dict
from prism_motor.runs.atomic import write_json
from prism_motor.runs.checkpoints import checkpoint_steps
from prism_motor.runs.configs import find_differences, flatten, to_flags
from prism_motor.runs.layout import CHECKPOINTS, CONFIG, EVALUATIONS, LOGS, METRICS, PLANS
from prism_motor.train.config import EvaluationConfig, RunConfig
from prism_motor.train.evaluations import Evaluations

Settings = dict[str, Any]
"""Overrides by dotted key."""

PRISM = (sys.executable, "-m", "prism_motor.cli")
"""The command that jobs are started with."""


@dataclass(frozen=True, kw_only=True)
class PlannedWork(ABC):
    """One folder as the campaign wants it."""

    folder: Path
    """The campaign's folder."""
    place: Path
    """The folder of this work inside it."""
    variant: str
    """Name of the variant, empty without variants."""
    arm: str
    """Name of the arm, empty if it is for all of them."""
    seed: int
    """Its seed."""
    setting: Settings | None = None
    """What a tuning run tries; ``None`` for everything else."""
    waiting: bool = False
    """Whether it cannot start yet, because something that comes before it is not done."""

    @property
    def path(self) -> Path:
        """Where it is done."""
        return self.folder / self.place

    @property
    def log(self) -> Path:
        """Where the output of its jobs goes."""
        return self.folder / LOGS / self.place.with_name(f"{self.place.name}.log")

    @property
    def title(self) -> str:
        """Name for people: the folder inside the campaign's."""
        return self.place.as_posix()

    @property
    def verb(self) -> str:
        """What its first step does."""
        return "train"

    @property
    def unit(self) -> str:
        """What it counts."""
        return "update"

    @property
    @abstractmethod
    def total(self) -> int:
        """Updates that are wanted."""

    @property
    def evaluations(self) -> int:
        """Evaluations that are wanted."""
        return 0

    @abstractmethod
    def start_command(self) -> list[str]:
        """Return the command that begins the work, or goes on with it."""

    def evaluate_command(self) -> list[str]:
        """Return the command that does the evaluations that are missing."""
        raise NotImplementedError(f"{self.title} is not evaluated.")

    @abstractmethod
    def check(self) -> None:
        """Refuse what is in its place if it is not of the planned settings."""

    def count_evaluations(self) -> int:
        """Return how many of the evaluations are done and valid."""
        return 0

    @abstractmethod
    def count_updates(self) -> int:
        """Return the updates that are done and saved."""

    @abstractmethod
    def live_updates(self) -> tuple[int, float] | None:
        """Return the updates that are done, saved or not, and the seconds that they took."""

    def guess_evaluation(self, update: float) -> float:
        """Guess the seconds of an evaluation from those of an update, before one was measured."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class PlannedPreparation(PlannedWork):
    """Something that the runs of a variant need before they can train."""

    preparation: Preparation
    """What the domain says about it."""

    @property
    def verb(self) -> str:
        """What its first step does."""
        return self.preparation.verb

    @property
    def unit(self) -> str:
        """What it counts."""
        return self.preparation.unit

    @property
    def total(self) -> int:
        """Pieces that are wanted."""
        return self.preparation.total

    def start_command(self) -> list[str]:
        """Return the command that makes what is missing."""
        return [*PRISM, *self.preparation.command()]

    def check(self) -> None:
        """Refuse what is in its place if it is something else."""
        try:
            self.preparation.check()
        except PrismError as error:
            raise CampaignError(str(error)) from error

    def count_updates(self) -> int:
        """Return the pieces that are done."""
        return self.preparation.count_done()

    def live_updates(self) -> tuple[int, float] | None:
        """Return the pieces that are done, and the seconds that they took."""
        return self.preparation.progress()


@dataclass(frozen=True, kw_only=True)
class PlannedRun(PlannedWork):
    """A policy that is trained and evaluated."""

    config: RunConfig
    """Its settings, without what only the task knows."""
    evaluation: EvaluationConfig | None = None
    """What is evaluated after training; ``None`` for tuning runs."""
    prepared: tuple[str, ...] = ()
    """Settings that say where a preparation is; the campaign's folder may have moved since."""

    @property
    def domain(self) -> Domain:
        """What is learned."""
        return DOMAINS[self.config.kind]

    @property
    def total(self) -> int:
        """Updates that are wanted."""
        return self.config.updates

    @property
    def evaluations(self) -> int:
        """Evaluations that are wanted: conditions times seeds."""
        return 0 if self.evaluation is None else len(self.evaluation.pairs)

    @property
    def plan_file(self) -> Path:
        """Where the settings are that its training starts from."""
        return self.folder / PLANS / self.place.with_name(f"{self.place.name}.json")

    def start_command(self) -> list[str]:
        """Return the command that trains the run, or goes on with it; write what it starts from."""
        if self.path.exists():
            return [*PRISM, "train", "--resume", str(self.path)]
        self.plan_file.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.plan_file, to_dict(self.config))
        return [*PRISM, "train", "--config", str(self.plan_file), "--out", str(self.path)]

    def evaluate_command(self) -> list[str]:
        """Return the command that does the evaluations that are missing."""
        assert self.evaluation is not None
        flags = [*to_flags(self.evaluation), "--checkpoint", str(self.total)]
        return [*PRISM, "eval", str(self.path), *flags]

    def check(self) -> None:
        """Refuse a run in its place that is not of the planned settings."""
        self.check_run(self.path)

    def check_run(self, path: Path) -> None:
        """Refuse a run folder that is not of the planned settings."""
        file = path / CONFIG
        if not file.is_file():
            return  # cut before it began, or no run: ``clear_unstarted`` looks closer
        try:
            there = self.domain.planned(self.domain.read_config(Run.open(path).config, str(file)))
        except PrismError as error:
            raise CampaignError(f"{file} is not of this version of prism: {error}") from error
        found, wanted = _flat(there), _flat(self.config)
        for key in self.prepared:
            if Path(found[key]).parts[-2:] == Path(wanted[key]).parts[-2:]:
                wanted[key] = found[key]
        if differences := find_differences(found, wanted):
            listed = "; ".join(
                f"{key} is {was!r} there and {now!r} in the campaign"
                for key, (was, now) in differences.items()
            )
            raise CampaignError(
                f"{path} holds a run with other settings: {listed}. Change the campaign back, or "
                "use another folder (--out), or move the run away."
            )

    def count_updates(self) -> int:
        """Return the updates that are done and saved."""
        return max(checkpoint_steps(self.path / CHECKPOINTS), default=0)

    def live_updates(self) -> tuple[int, float] | None:
        """Return (updates, seconds) of the last line of the metrics."""
        try:
            with (self.path / METRICS).open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - 8192))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return None
        for line in reversed(lines):
            try:
                row = json.loads(line)
                # Runs from before updates were called so count iterations.
                updates = row["update"] if "update" in row else row["iteration"]
                return int(updates), float(row["seconds"])
            except (ValueError, KeyError, TypeError):
                continue
        return None

    def count_evaluations(self) -> int:
        """Return how many evaluations are of this protocol, this checkpoint and these weights."""
        if self.evaluation is None or not (self.path / EVALUATIONS).is_dir():
            return 0
        return Evaluations(self.path, self.evaluation, self.total).count_done()

    def guess_evaluation(self, update: float) -> float:
        """Guess the seconds of an evaluation from those of an update."""
        if self.evaluation is None:
            return 0.0
        return self.domain.guess_evaluation(self.config, self.evaluation, update)


def _flat(config: RunConfig) -> dict[str, Any]:
    """Return settings by dotted key, as they look after writing and reading."""
    return flatten(json.loads(json.dumps(to_dict(config))))
