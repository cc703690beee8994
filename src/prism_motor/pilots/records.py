"""Trials on disk: what each one records, and which one comes next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from prism_motor._checks import InputError
from prism_motor.pilots.layout import TRIALS, PilotError, trial_file
from prism_motor.pilots.order import Slot
from prism_motor.pilots.plan import PilotPlan, plan_hash
from prism_motor.runs.atomic import remove_leftovers, write_json
from prism_motor.runs.configs import ConfigError, from_dict, to_dict

FAILURES: dict[int, str] = {
    1: "no contact",
    2: "beside the target",
    3: "too light",
    4: "pushed it away",
    5: "stuck",
    6: "other",
}
"""Failures by code."""

KILLED = "the program was killed during the trial"
"""Reason of a void trial that never ended."""


@dataclass(frozen=True)
class Label:
    """What somebody, or the robot itself, says about a trial."""

    outcome: Literal["success", "failure", "void"]
    """``void``: no trial of the policy, because of the hardware; it is repeated."""
    by: str
    """Who says so; ``robot`` if it was not a person."""
    code: int | None = None
    """Kind of failure, a key of :data:`FAILURES`; the robot may not know."""
    reason: str = ""
    """Why it is void."""
    note: str = ""
    """Anything else."""

    def __post_init__(self) -> None:
        if self.outcome == "void" and not self.reason.strip():
            raise InputError("A void trial needs a reason: what went wrong with the hardware?")
        if self.code is not None and (self.outcome != "failure" or self.code not in FAILURES):
            raise InputError(f"Only a failure has a code, 1 to {len(FAILURES)}; got {self.code}.")


@dataclass(frozen=True)
class Course:
    """How a trial went."""

    seconds: float
    """Its duration by the clock that limits it."""
    frames: int
    """Control steps."""
    rate: float | None
    """Achieved control steps per second by the wall clock; ``None`` for fewer than two."""
    worst: float | None
    """Longest time between two control steps by the wall clock, s."""
    stopped_by: str
    """``limit``, ``key``, ``success`` (by the robot's judgement), ``not finite`` (an action),
    ``signal``, ``robot`` (an error of it) or ``keyboard`` (it was gone)."""
    success_after: float | None
    """Seconds until success, if the robot or a key said when."""


@dataclass(frozen=True)
class Trial:
    """One trial; without a label it is not over."""

    number: int
    """From 1, in the order in which they were done."""
    slot: int
    """The planned trial that it is."""
    pose: int
    """Its start pose."""
    arm: str
    """Letter of its arm."""
    policy: int
    """Which of the arm's policies, from 0."""
    plan: str
    """Hash of the plan's seal."""
    repeats: int | None = None
    """The void trial that it repeats."""
    started: str = ""
    """When, in UTC."""
    scene: dict[str, Any] | None = None
    """The start pose as a simulated robot describes it."""
    course: Course | None = None
    """How it went; ``None`` until it has ended."""
    judged: dict[str, Any] | None = None
    """What the robot's own judgement says."""
    clicks: tuple[float, ...] | None = None
    """Seconds of clicks of the mouse on the table, if they were listened to."""
    label: Label | None = None
    """Its label."""


def now() -> str:
    """Return the time in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


class TrialBook:
    """All trials of a pilot.

    Args:
        folder: The pilot's folder.
        plan: Its plan.
    """

    def __init__(self, folder: Path, plan: PilotPlan) -> None:
        self.folder, self.plan = folder, plan
        self.seal = plan_hash(folder)
        self.trials: list[Trial] = []
        for number in range(1, 1 + len(list((folder / TRIALS).glob("[0-9]*.json")))):
            self.trials.append(self._read(number))

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def queue(self) -> list[tuple[Slot, int | None]]:
        """Return all trials to do in order: those planned, then repetitions of void ones."""
        planned: list[tuple[Slot, int | None]] = [(slot, None) for slot in self.plan.order]
        void = [trial for trial in self.trials if trial.label and trial.label.outcome == "void"]
        return planned + [(self.plan.order[trial.slot - 1], trial.number) for trial in void]

    @property
    def total(self) -> int:
        """Number of trials to do, repetitions included."""
        return len(self.queue())

    @property
    def open(self) -> Trial | None:
        """The trial that has no label yet, if one was begun."""
        return next((trial for trial in self.trials if trial.label is None), None)

    @property
    def finished(self) -> bool:
        """Whether every planned trial has a label that counts."""
        return self.open is None and len(self.trials) == self.total

    def begin(self) -> Trial:
        """Record that the next trial begins, so that nothing can happen to it unseen."""
        if self.open is not None:
            raise PilotError(f"Trial {self.open.number} has no label yet.")
        slot, repeats = self.queue()[len(self.trials)]
        trial = Trial(
            number=len(self.trials) + 1,
            slot=slot.number,
            pose=slot.pose,
            arm=slot.arm,
            policy=slot.policy,
            plan=self.seal,
            repeats=repeats,
            started=now(),
        )
        self.trials.append(trial)
        self.write(trial)
        return trial

    def write(self, trial: Trial) -> None:
        """Put a trial on disk; it is there when this returns."""
        self.trials[trial.number - 1] = trial
        write_json(trial_file(self.folder, trial.number), to_dict(trial))

    def settle(self) -> Trial | None:
        """Make a trial void that was killed before it ended, and return it."""
        trial = self.open
        if trial is None or trial.course is not None:
            return None
        void = replace(trial, label=Label("void", by="robot", reason=KILLED))
        # What was written of its video is unusable.
        remove_leftovers(self.folder / TRIALS)
        for file in (self.folder / TRIALS).glob(f".{trial.number:03d}*"):
            file.unlink(missing_ok=True)
        self.write(void)
        return void

    def _read(self, number: int) -> Trial:
        file = trial_file(self.folder, number)
        try:
            trial = from_dict(Trial, json.loads(file.read_text(encoding="utf-8")), file.name)
        except (OSError, ValueError, ConfigError) as error:
            raise PilotError(f"{file} is missing or damaged: {error}") from error
        if trial.plan != self.seal or trial.number != number:
            raise PilotError(f"{file} belongs to another plan. Restore it from your copy.")
        return trial
