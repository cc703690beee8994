"""Doing the trials of a pilot, one after another, from wherever they stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import check_name
from prism_motor._console import count, note
from prism_motor._plugins import load_plugins
from prism_motor._processes import Stopped, StopRequests
from prism_motor.integrations.lerobot.robots import (
    RobotError,
    connect_robot,
    disconnect_robot,
    encode_robot,
    make_robot,
    parse_robot,
)
from prism_motor.pilots.checks import check_start, read_features
from prism_motor.pilots.clicks import MouseClicks
from prism_motor.pilots.keys import SPACE, Keys
from prism_motor.pilots.labelling import ask_label, judge_label
from prism_motor.pilots.layout import HOME, PilotError
from prism_motor.pilots.loop import Body, run_trial
from prism_motor.pilots.pictures import StartPictures
from prism_motor.pilots.plan import (
    PilotPlan,
    check_not_revealed,
    open_sealed,
    read_plan,
)
from prism_motor.pilots.planning import find_provenance
from prism_motor.pilots.policies import PilotPolicy, is_unchanged, load_policy
from prism_motor.pilots.recording import Recorder
from prism_motor.pilots.records import Course, Label, Trial, TrialBook
from prism_motor.runs.atomic import write_json
from prism_motor.runs.layout import LOCK
from prism_motor.runs.locks import Lock
from prism_motor.runs.seals import fingerprint

_REHEARSALS = 3
"""Actions of every policy before the first trial, the same number for all."""


@dataclass(frozen=True)
class PilotProgress:
    """How far a pilot has got."""

    done: int
    """Trials with a label, void ones included."""
    total: int
    """Trials to do, repetitions included."""


def run_pilot(
    folder: Path, *, by: str = "operator", clicks: Path | None = None, keys: Keys | None = None
) -> PilotProgress:
    """Do the trials that are left.

    Nothing about successes so far is shown, and no arm is named.

    Args:
        folder: The pilot's folder.
        by: Who labels.
        clicks: Input device of a mouse whose clicks are recorded, too.
        keys: The keyboard; default: standard input.
    """
    check_name("labeller", by)
    plan = read_plan(folder)
    check_not_revealed(folder)
    with ExitStack() as stack:
        stack.enter_context(Lock(folder / LOCK, f"{folder} is already being run by {{owner}}."))
        book = TrialBook(folder, plan)
        _settle(book)
        if book.finished:
            return PilotProgress(len(book.trials), book.total)
        body = _make_body(plan)
        listener = stack.enter_context(MouseClicks(clicks)) if clicks is not None else None
        policies = _load_policies(folder, plan)
        keyboard = stack.enter_context(Keys() if keys is None else keys)
        connect_robot(body.robot)
        stack.callback(disconnect_robot, body.robot)
        session = _Session(folder, plan, book, body, policies, keyboard, listener, by)
        session.prepare()
        while not book.finished:
            session.do_next()
        return PilotProgress(len(book.trials), book.total)


def _settle(book: TrialBook) -> None:
    killed = book.settle()
    if killed is not None:
        note(
            f"Trial {killed.number} was killed before it ended. It is void, and will be repeated "
            "at the end."
        )


def _make_body(plan: PilotPlan) -> Body:
    """Return the robot of a plan, unconnected; raise if anything about it has changed."""
    load_plugins(plan.plugins, recorded=True)
    settings = parse_robot(plan.robot.flags)
    robot = make_robot(settings)
    features = read_features(robot)
    calibration = robot.calibration_fpath
    hashed = fingerprint(calibration)["sha256"] if calibration.is_file() else None
    versions = (plan.provenance["packages"]["lerobot"], find_provenance()["packages"]["lerobot"])
    for what, planned, found in (
        ("LeRobot's version", *versions),
        ("the robot's settings", plan.robot.settings, encode_robot(settings)),
        ("the robot's calibration file", plan.robot.calibration, hashed),
        ("the robot's state", plan.robot.state, features.state),
        ("the robot's actions", plan.robot.actions, features.actions),
    ):
        if planned != found:
            shown = f": {planned}, now {found}" if not isinstance(planned, dict) else ""
            raise PilotError(
                f"Since the plan was sealed, {what} changed{shown}. Change it back, or start a new "
                "pilot folder."
            )
    return Body(robot, features.state, features.actions, tuple(features.cameras))


def _load_policies(folder: Path, plan: PilotPlan) -> dict[tuple[str, int], PilotPolicy]:
    """Load all policies and warm them up alike; messages name no arm."""
    sealed = open_sealed(folder)
    total = len(plan.arms) * plan.policies
    print(f"Loading {count(total, 'policy', 'policies')}.", flush=True)
    found: dict[tuple[str, int], PilotPolicy] = {}
    for letter in plan.arms:
        for index, source in enumerate(sealed.arm(letter).policies):
            if not is_unchanged(source):
                raise PilotError(
                    f"A policy of arm {letter} is gone or has changed since the plan was sealed. "
                    "Restore its files, or start a new pilot folder."
                )
            found[letter, index] = load_policy(source, plan.config.device)
    for policy in found.values():
        for _ in range(_REHEARSALS):
            policy.rehearse(plan.config.task)
    return found


class _Session:
    """The trials of one call, with everything that they need."""

    def __init__(
        self,
        folder: Path,
        plan: PilotPlan,
        book: TrialBook,
        body: Body,
        policies: dict[tuple[str, int], PilotPolicy],
        keys: Keys,
        clicks: MouseClicks | None,
        by: str,
    ) -> None:
        self.folder, self.plan, self.book, self.body = folder, plan, book, body
        self.policies, self.keys, self.clicks, self.by = policies, keys, clicks, by
        self.config = plan.config
        self.pictures = StartPictures(folder, self.config.poses)

    def prepare(self) -> None:
        """Find out where home is, and whether the policies know that place."""
        seen = self.body.observe()
        self.home = self._find_home(self.body.present(seen))
        known = dict(zip(self.body.actions, self.home, strict=True))
        state = np.array([known.get(name, seen.state[i]) for i, name in enumerate(self.body.state)])
        for (letter, _), policy in self.policies.items():
            check_start(f"arm {letter}", policy, self.body.state, state)
        print(f"A success is: {self.config.criterion}")

    def _find_home(self, present: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return home: as planned, else where the robot was when the first trial began."""
        if self.config.home is not None:
            return np.array(self.config.home, dtype=np.float32)
        file = self.folder / HOME
        if not file.is_file():
            named = dict(zip(self.body.actions, map(float, present), strict=True))
            write_json(file, named)
        stored = json.loads(file.read_text(encoding="utf-8"))
        return np.array([stored[name] for name in self.body.actions], dtype=np.float32)

    def do_next(self) -> None:
        """Do the next trial, or label one that has ended without a label."""
        trial = self.book.open
        if trial is not None:
            print(f"Trial {trial.number} has ended without a label; its videos are in trials/.")
            self.book.write(replace(trial, label=ask_label(self.keys, self.by)))
            return
        slot, _ = self.book.queue()[len(self.book.trials)]
        number = len(self.book.trials) + 1
        print(f"Trial {number} of {self.book.total}, start pose {slot.pose}.", flush=True)
        self._go_home()
        if not self.body.simulated:
            self._wait_for_operator(slot.pose)
        self._run(self.book.begin())

    def _go_home(self) -> None:
        """Move to the start; a fault here costs no trial, because none has begun."""
        try:
            self.body.go(self.home, self.config.home_seconds, self.plan.fps)
        except RobotError as error:
            raise RobotError(
                f"The robot failed on its way home: {error}. No trial was lost; run the same "
                "command again."
            ) from error

    def _wait_for_operator(self, pose: int) -> None:
        """Show the start pose until the operator presses space."""
        self.keys.forget()
        known = bool(self.pictures.reference(pose))
        if known:
            files = self.pictures.overlay(pose, self.body.observe().images)
            print(self.pictures.show(files))
        else:
            print("A new start pose: put things somewhere else.")
        print("Space starts the trial; space, s or f ends it. Ctrl-C now loses nothing.")
        refresh: Callable[[], Any] | None = None
        if known:
            refresh = lambda: self.pictures.overlay(pose, self.body.observe().images)  # noqa: E731
        self.keys.wait(SPACE, refresh)
        self.pictures.keep(pose, self.body.observe().images)

    def _run(self, trial: Trial) -> None:
        """Run a trial that has begun, and put its course and label on disk."""
        policy = self.policies[trial.arm, trial.policy]
        pose = self.plan.poses[trial.pose - 1]
        recorder = Recorder(self.folder, trial.number, self.body.cameras, self.plan.fps)
        fault: RobotError | PilotError | None = None
        with StopRequests() as stop:
            try:
                if self.body.simulated:
                    trial = replace(trial, scene=self.body.place(pose.seed))
                if self.clicks is not None:
                    self.clicks.start()
                policy.reset(pose.seed)
                course, key, judged = run_trial(
                    self.body,
                    policy,
                    recorder,
                    task=self.config.task,
                    fps=self.plan.fps,
                    limit=self.config.limit,
                    poll=self._poll,
                    stop=stop,
                )
                trial = replace(trial, course=course, judged=judged)
            except (RobotError, PilotError) as error:  # of the robot, or of the keyboard
                fault, key, judged = error, None, None
                frames = len(recorder.times)
                cause = "robot" if isinstance(error, RobotError) else "keyboard"
                lost = Course(frames / self.plan.fps, frames, None, None, cause, None)
                trial = replace(trial, course=lost)
            recorder.close({"state": self.body.state, "action": self.body.actions})
            if self.clicks is not None:
                trial = replace(trial, clicks=self.clicks.take())
            self.book.write(self._label_at_once(trial, fault, stop.asked))
        if isinstance(fault, PilotError):
            raise fault
        if fault is not None:
            raise RobotError(
                f"The robot failed in trial {trial.number}: {fault}. The trial is void and will be "
                "repeated at the end; run the same command again."
            ) from fault
        if stop.asked:
            raise Stopped(stop.asked)
        if self.book.open is not None:
            self.keys.forget()
            self.book.write(replace(trial, label=ask_label(self.keys, self.by, key)))

    def _poll(self) -> str | None:
        """Return a key, if there is an operator to press one."""
        return None if self.body.simulated and self.body.judges else self.keys.poll()

    def _label_at_once(self, trial: Trial, fault: Exception | None, signal: int) -> Trial:
        """Return a trial with the label that needs no question, if there is one."""
        if fault is not None:
            reason = "the keyboard was gone"
            if isinstance(fault, RobotError):
                reason = f"the robot failed: {fault}"
            return replace(trial, label=Label("void", by="robot", reason=reason))
        assert trial.course is not None
        if signal and trial.course.stopped_by == "signal":
            reason = "the operator stopped the program during the trial"
            return replace(trial, label=Label("void", by="robot", reason=reason))
        if trial.judged is not None:
            return replace(trial, label=judge_label(trial.judged))
        if self.body.judges:  # no action was taken, so nothing was judged
            return replace(trial, label=Label("failure", by="robot", note="no action was finite"))
        return trial
