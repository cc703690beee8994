"""One piece of a campaign's work: its folder, settings, commands and progress."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_motor._checks import PrismError
from prism_motor.campaigns.config import CampaignError
from prism_motor.domains import DOMAINS, Domain
from prism_motor.protocols import Preparation
from prism_motor.runs import Run, to_dict
from prism_motor.runs.atomic import write_json
from prism_motor.runs.checkpoints import checkpoint_steps
from prism_motor.runs.configs import find_differences, flatten, to_flags
from prism_motor.runs.folder import is_unstarted
from prism_motor.runs.layout import CHECKPOINTS, CONFIG, EVALUATIONS, LOGS, METRICS, PLANS
from prism_motor.train.config import EvaluationConfig, RunConfig
from prism_motor.train.evaluations import Evaluations

Settings = dict[str, Any]
"""Overrides by dotted key."""

PRISM = (sys.executable, "-m", "prism_motor.cli")
"""The command that starts jobs."""


@dataclass(frozen=True, kw_only=True)
class PlannedWork(ABC):
    """One folder that the campaign produces."""

    folder: Path
    """The campaign's folder."""
    place: Path
    """Folder of this work, relative to the campaign's."""
    variant: str
    """Name of the variant, empty without variants."""
    arm: str
    """Name of the arm, empty if the work is for all arms."""
    seed: int
    """Its seed."""
    setting: Settings | None = None
    """The settings that a tuning run tries; ``None`` for other work."""
    waiting: bool = False
    """Whether it waits for other work to finish."""

    @property
    def path(self) -> Path:
        """Folder of this work."""
        return self.folder / self.place

    @property
    def log(self) -> Path:
        """Log file of its jobs."""
        return self.folder / LOGS / self.place.with_name(f"{self.place.name}.log")

    @property
    def title(self) -> str:
        """Name in messages: the folder relative to the campaign's."""
        return self.place.as_posix()

    @property
    def verb(self) -> str:
        """Verb for its first step."""
        return "train"

    @property
    def unit(self) -> str:
        """Unit of progress."""
        return "update"

    @property
    @abstractmethod
    def total(self) -> int:
        """Updates required."""

    @property
    def evaluations(self) -> int:
        """Evaluations required."""
        return 0

    @abstractmethod
    def start_command(self) -> list[str]:
        """Return the command that starts or resumes the work."""

    def resume_command(self) -> list[str]:
        """Return the command that continues the work once its folder has begun."""
        return self.start_command()

    @property
    def device(self) -> str:
        """Device of its settings."""
        return "cpu"

    @property
    def threads(self) -> int:
        """Cores that it uses."""
        return 1

    def evaluate_command(self) -> list[str]:
        """Return the command that runs the missing evaluations."""
        raise NotImplementedError(f"{self.title} is not evaluated.")

    @abstractmethod
    def check(self) -> None:
        """Reject an existing folder that does not have the planned settings."""

    def count_evaluations(self) -> int:
        """Return the number of valid evaluations."""
        return 0

    @abstractmethod
    def count_updates(self) -> int:
        """Return the number of updates in the newest checkpoint."""

    @abstractmethod
    def live_updates(self) -> tuple[int, float] | None:
        """Return the updates done, saved or not, and the seconds they took."""

    def guess_evaluation(self, update: float) -> float:
        """Guess the seconds per evaluation from those per update, until one is measured."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class PlannedPreparation(PlannedWork):
    """Something that the runs of a variant need before they can train."""

    preparation: Preparation
    """The domain's description of it."""

    @property
    def verb(self) -> str:
        """Verb for its first step."""
        return self.preparation.verb

    @property
    def unit(self) -> str:
        """Unit of progress."""
        return self.preparation.unit

    @property
    def total(self) -> int:
        """Pieces required."""
        return self.preparation.total

    def start_command(self) -> list[str]:
        """Return the command that makes the missing pieces."""
        return [*PRISM, *self.preparation.command()]

    def check(self) -> None:
        """Reject an existing folder that holds something else."""
        try:
            self.preparation.check()
        except PrismError as error:
            raise CampaignError(str(error)) from error

    def count_updates(self) -> int:
        """Return the number of finished pieces."""
        return self.preparation.count_done()

    def live_updates(self) -> tuple[int, float] | None:
        """Return the finished pieces and the seconds they took."""
        return self.preparation.progress()


@dataclass(frozen=True, kw_only=True)
class PlannedRun(PlannedWork):
    """A policy to train and evaluate."""

    config: RunConfig
    """Its settings, without those derived from the task."""
    protocols: tuple[EvaluationConfig, ...] = ()
    """What to evaluate after training; nothing for tuning runs."""
    prepared: tuple[str, ...] = ()
    """Settings that hold paths of preparations, which change if the campaign's folder moves."""

    @property
    def domain(self) -> Domain:
        """The domain of the run."""
        return DOMAINS[self.config.kind]

    @property
    def total(self) -> int:
        """Updates required."""
        return self.config.updates

    @property
    def _evaluated(self) -> int:
        """Update whose checkpoint is evaluated."""
        return min(self.config.reported or self.total, self.total)

    @property
    def evaluations(self) -> int:
        """Evaluations required: conditions times seeds, of all protocols."""
        return sum(len(evaluation.pairs) for evaluation in self.protocols)

    @property
    def plan_file(self) -> Path:
        """Path of the settings that its training starts from."""
        return self.folder / PLANS / self.place.with_name(f"{self.place.name}.json")

    @property
    def has_begun(self) -> bool:
        """Whether its folder holds more than what a run leaves that was cut at its start."""
        return self.path.exists() and not is_unstarted(self.path)

    def start_command(self) -> list[str]:
        """Return the command that starts or resumes training; write the settings it reads."""
        if self.has_begun:
            return self.resume_command()
        self.plan_file.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.plan_file, to_dict(self.config))
        return [*PRISM, "train", "--config", str(self.plan_file), "--out", str(self.path)]

    def resume_command(self) -> list[str]:
        """Return the command that resumes training."""
        return [*PRISM, "train", "--resume", str(self.path)]

    @property
    def device(self) -> str:
        """Device of its settings."""
        return self.config.device

    @property
    def threads(self) -> int:
        """Threads of its training or its evaluations, whichever has more."""
        return max(self.config.threads, *(one.threads for one in self.protocols), 1)

    def evaluate_command(self) -> list[str]:
        """Return the command that runs what is missing of the first unfinished protocol."""
        done = self._count_by_protocol()
        left = [
            one for one, count in zip(self.protocols, done, strict=True) if count < len(one.pairs)
        ]
        usual = self.domain.protocol(self.config.preset)
        flags = to_flags((left or self.protocols)[0], usual)
        flags += ["--checkpoint", str(self._evaluated)]
        return [*PRISM, "eval", str(self.path), *flags]

    def check(self) -> None:
        """Reject an existing run that does not have the planned settings."""
        self.check_run(self.path)

    def check_run(self, path: Path) -> None:
        """Reject a run folder that does not have the planned settings."""
        file = path / CONFIG
        if not file.is_file():
            return  # cut at its start, or not a run, which training will say
        try:
            there = self.domain.planned(self.domain.read_config(Run.open(path).config, str(file)))
        except PrismError as error:
            raise CampaignError(
                f"{file} cannot be read by this version of prism: {error}"
            ) from error
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
                "use another folder (--out), or move the run elsewhere."
            )

    def count_updates(self) -> int:
        """Return the number of updates in the newest checkpoint."""
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
                # Older runs call updates iterations.
                updates = row["update"] if "update" in row else row["iteration"]
                return int(updates), float(row["seconds"])
            except (ValueError, KeyError, TypeError):
                continue
        return None

    def count_evaluations(self) -> int:
        """Return the number of evaluations that match a protocol, checkpoint and weights."""
        return sum(self._count_by_protocol())

    def _count_by_protocol(self) -> list[int]:
        if not self.protocols or not (self.path / EVALUATIONS).is_dir():
            return [0] * len(self.protocols)
        first = Evaluations(self.path, self.protocols[0], self._evaluated)
        counts = [first.count_done()]
        return counts + [first.under(one).count_done() for one in self.protocols[1:]]

    def guess_evaluation(self, update: float) -> float:
        """Guess the seconds per evaluation from those per update."""
        if not self.protocols:
            return 0.0
        return self.domain.guess_evaluation(self.config, self.protocols[0], update)


def _flat(config: RunConfig) -> dict[str, Any]:
    """Return settings by dotted key, as they are after a round trip through JSON.

    Device and engine are not compared: a run records what a planned ``auto`` stood for.
    """
    found = flatten(json.loads(json.dumps(to_dict(config))))
    return {key: value for key, value in found.items() if key not in ("device", "engine")}
