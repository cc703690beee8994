"""The control loop: a policy acts on a robot until success, the limit or a key."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor._processes import StopRequests
from prism_motor.integrations.lerobot.robots import RobotError
from prism_motor.pilots.keys import SPACE
from prism_motor.pilots.policies import PilotPolicy
from prism_motor.pilots.recording import Image, Recorder
from prism_motor.pilots.records import Course
from prism_motor.pilots.scene import JudgesTrials, PlacesThings

STOPS = (SPACE, "s", "f", "v")
"""Keys that end a trial; all but space are its label, too."""


@dataclass(frozen=True)
class Seen:
    """What a robot measures at one time."""

    state: NDArray[np.float32]
    """Its state."""
    images: dict[str, Image]
    """Images by camera."""


_SETTLING = 3.0
"""Longest wait for a robot that is still on its way home, s."""


class Pace:
    """Keeps the time between control steps; a late step does not make the next ones hurry.

    Args:
        fps: Control steps per second.
        wait: Whether to wait at all; a simulated robot has its own time.
    """

    def __init__(self, fps: int, *, wait: bool) -> None:
        self.step, self.wait = 1 / fps, wait
        self._due = time.monotonic()

    def keep(self) -> None:
        """Wait for the next control step."""
        self._due = max(self._due + self.step, time.monotonic())
        if self.wait:
            time.sleep(max(0.0, self._due - time.monotonic()))


class Body:
    """A connected robot, in the order of its features; its errors become one message.

    Args:
        robot: LeRobot's robot.
        state: Names of the coordinates of its state.
        actions: Names of the coordinates of its actions.
        cameras: Its cameras.
    """

    def __init__(
        self,
        robot: Any,
        state: tuple[str, ...],
        actions: tuple[str, ...],
        cameras: tuple[str, ...],
    ) -> None:
        self.robot, self.state, self.actions, self.cameras = robot, state, actions, cameras
        self.simulated = isinstance(robot, PlacesThings)
        self.judges = isinstance(robot, JudgesTrials)

    def observe(self) -> Seen:
        """Return what it measures."""
        seen = self._ask(self.robot.get_observation)
        state = np.array([seen[name] for name in self.state], dtype=np.float32)
        return Seen(state, {camera: np.asarray(seen[camera]) for camera in self.cameras})

    def send(self, action: NDArray[np.floating]) -> NDArray[np.float32]:
        """Tell it what to do, and return what it was told after its own limits."""
        named = dict(zip(self.actions, map(float, action), strict=True))
        sent = self._ask(lambda: self.robot.send_action(named)) or named
        return np.array([sent.get(name, named[name]) for name in self.actions], dtype=np.float32)

    def place(self, seed: int) -> dict[str, Any]:
        """Set the scene of a simulated robot."""
        return self._ask(lambda: self.robot.place(seed))

    def judge(self) -> dict[str, Any] | None:
        """Return its own judgement of the trial, if it has one."""
        return self._ask(self.robot.outcome) if self.judges else None

    def present(self, seen: Seen) -> NDArray[np.float32]:
        """Return the actions that would keep it where it is: what is no position is zero."""
        known = dict(zip(self.state, seen.state, strict=True))
        return np.array([known.get(name, 0.0) for name in self.actions], dtype=np.float32)

    def go(self, home: NDArray[np.floating], seconds: float, fps: int) -> None:
        """Move to a pose in even steps, then wait until the robot comes no closer.

        Motors lag behind and may never arrive exactly; what counts is that every trial starts the
        same.
        """
        start = self.present(self.observe())
        steps = max(1, round(seconds * fps))
        pace = Pace(fps, wait=not self.simulated)
        for step in range(1, steps + 1):
            self.send(start + (home - start) * step / steps)
            pace.keep()
        near = 0.01 * float(np.abs(home - start).max())
        distance = self._distance(home)
        for _ in range(round(_SETTLING * fps)):
            if distance <= near:
                return
            self.send(home)
            pace.keep()
            before, distance = distance, self._distance(home)
            if before - distance < near:
                return

    def _distance(self, pose: NDArray[np.floating]) -> float:
        """Return how far the farthest joint is from a pose."""
        return float(np.abs(pose - self.present(self.observe())).max())

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except Exception as error:  # LeRobot's robots raise all kinds
            raise RobotError(" ".join(str(error).split()) or type(error).__name__) from error


def run_trial(
    body: Body,
    policy: PilotPolicy,
    recorder: Recorder,
    *,
    task: str,
    fps: int,
    limit: float,
    poll: Callable[[], str | None],
    stop: StopRequests,
) -> tuple[Course, str | None, dict[str, Any] | None]:
    """Let a policy act.

    Args:
        body: The robot, at its start.
        policy: The policy, reset.
        recorder: Records every control step.
        task: Instruction for policies that follow one.
        fps: Control steps per second.
        limit: Longest time, s.
        poll: Returns a key that was pressed, or ``None``.
        stop: Notes signals, which end the trial.

    Returns:
        How it went, the key that ended it, and the robot's own judgement.
    """
    most = max(1, round(limit * fps))
    key: str | None = None
    judged: dict[str, Any] | None = None
    stopped_by, success_after, frame = "limit", None, 0
    pace = Pace(fps, wait=not body.simulated)
    began = time.monotonic()

    def clock() -> float:
        """Seconds of the trial: a simulated robot has its own time."""
        return frame / fps if body.simulated else time.monotonic() - began

    while frame < most if body.simulated else clock() < limit:
        # See, decide, act.
        when = time.monotonic() - began
        seen = body.observe()
        action = policy.act(seen.state, seen.images, task)
        if not np.isfinite(action).all():
            stopped_by = "not finite"
            break
        sent = body.send(action)
        recorder.add(when, seen.state, seen.images, action, sent)
        frame += 1
        # Success as the robot sees it, the operator's keys, or a signal may end the trial.
        judged = body.judge()
        if judged is not None and judged["success"]:
            stopped_by, success_after = "success", clock()
            break
        key = poll()
        if key in STOPS:
            stopped_by = "key"
            success_after = clock() if key == "s" else None
            break
        key = None
        if stop.asked:
            stopped_by = "signal"
            break
        pace.keep()
    course = _measure(recorder.times, frame, clock(), stopped_by, success_after)
    return course, key, judged


def _measure(
    times: list[float], frames: int, seconds: float, stopped_by: str, success_after: float | None
) -> Course:
    """Return how a trial went, with the rate and the longest gap of its control steps."""
    gaps = np.diff(times)
    return Course(
        seconds=round(seconds, 4),
        frames=frames,
        rate=round(float(1 / gaps.mean()), 2) if len(gaps) and gaps.mean() > 0 else None,
        worst=round(float(gaps.max()), 4) if len(gaps) else None,
        stopped_by=stopped_by,
        success_after=None if success_after is None else round(success_after, 4),
    )
