"""What a robot measures, and the part of a controller that keeps it safe."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contracts import check_contract
from .networks import check_policy
from .rules import FASTEST, WIDEST, RunnerError, SafetyStop, shown

LARGEST = 1e30
"""Largest number of a policy, a command or an observation source; finite in single precision."""


@dataclass(frozen=True)
class Reading:
    """What the robot measures; joints in the contract's order."""

    q: np.ndarray
    """Joint angles, rad."""
    dq: np.ndarray
    """Joint velocities, rad/s."""
    angular_velocity: np.ndarray
    """Angular velocity of the base in its own axes, rad/s."""
    euler: np.ndarray
    """Roll, pitch and yaw of the base (ZYX), rad; yaw from -pi to pi."""


class Watchdog:
    """Says when the last control step was too long ago.

    Args:
        deadline: Longest time between control steps, s.
        clock: Returns the time in seconds; it never goes back.
    """

    def __init__(self, deadline: float, clock: Callable[[], float]) -> None:
        self.deadline, self.clock = deadline, clock
        self.fed: float | None = None

    def feed(self) -> None:
        """Note that a control step begins now."""
        self.fed = self.clock()

    def check(self) -> None:
        """Raise if the last control step is overdue; before the first one, nothing is."""
        if self.fed is None:
            return
        age = self.clock() - self.fed
        if not 0 <= age <= self.deadline:
            raise RunnerError(
                f"the last control step was {age:.4g} s ago; safety.deadline allows "
                f"{self.deadline:.4g} s"
            )


class SafeController(ABC):
    """A policy that acts only on what is finite, within limits and in time; else it holds.

    On a robot, call :meth:`step` every ``control.dt`` seconds, and in the faster loop of the motors
    :meth:`follow` (drives that take angles) or :meth:`torques` (drives that take torques).

    Attributes:
        steps: Control steps since the start.
        action: The action applied last.
        targets: The joint targets given last.
        stopped: Why it holds; ``None`` while it acts.

    Args:
        contract: The contract; checked again.
        session: The policy in onnxruntime.
        clock: Time in seconds for the watchdog; a simulation gives its own.
    """

    reach = 1.0
    """How far beyond a joint's range its target may be, in units of torque limit / stiffness."""

    def __init__(
        self, contract: dict[str, Any], session: Any, clock: Callable[[], float] = time.monotonic
    ) -> None:
        check_contract(contract)
        check_policy(contract, session)
        self.contract = contract
        self.session = session
        self._prepare()
        self._set_limits()
        self.watchdog = Watchdog(contract["safety"]["deadline"], clock)
        self.reset()
        rest = Reading(self.default_pose, 0 * self.default_pose, np.zeros(3), np.zeros(3))
        self._try(rest)  # sizes are found wrong before anything moves

    @abstractmethod
    def _prepare(self) -> None:
        """Read what the policy needs from the contract; raise if something is not known."""

    @abstractmethod
    def _try(self, reading: Reading) -> None:
        """Raise if what the policy would see in a reading has another size than it expects."""

    @abstractmethod
    def _decide(self, reading: Reading, command: np.ndarray) -> np.ndarray:
        """Return joint targets, not yet clamped, for a checked reading; set :attr:`action`."""

    def _set_limits(self) -> None:
        joints, safety = self.contract["joints"], self.contract["safety"]
        self._names = names = [joint["name"] for joint in joints]
        self.default_pose, self._stiffness, self._damping, self._torque_limit = (
            np.array([joint[key] for joint in joints], float)
            for key in ("default", "stiffness", "damping", "torque_limit")
        )
        ranges = [joint["range"] or (-WIDEST, WIDEST) for joint in joints]
        self._low, self._high = np.array(ranges, float).T
        speed = np.array([joint["velocity_limit"] or FASTEST for joint in joints], float)
        slack, turn = safety["position_tolerance"], safety["angular_velocity"]
        euler = np.array([math.pi, math.pi / 2, math.pi]) + 1e-3  # rounding of single precision
        self._readable: dict[str, tuple[Sequence[str], Any, Any]] = {
            "q": (names, self._low - slack, self._high + slack),
            "dq": (names, -speed, speed),
            "angular_velocity": ("xyz", -turn, turn),
            "euler": (("roll", "pitch", "yaw"), -euler, euler),
        }
        # From anywhere in the range, a target this far beyond it asks for the full torque.
        reach = self.reach * self._torque_limit / self._stiffness
        self._target_low, self._target_high = self._low - reach, self._high + reach

    def reset(self) -> None:
        """Restart: clock at zero, empty history, no stop."""
        self.steps = 0
        self.action = np.zeros(len(self.default_pose))
        self.stopped: str | None = None
        self.targets = self.default_pose.copy()
        self.watchdog.fed = None
        self._posture = np.clip(self.default_pose, self._low, self._high)

    def step(self, reading: Reading, command: np.ndarray) -> np.ndarray:
        """Return the joint targets for the next control step.

        Args:
            reading: What the robot measures now.
            command: What the policy is told: for walking a command, for tracking a latent.

        Raises:
            SafetyStop: Something is not finite, out of range or late, now or since the last reset.
        """
        if self.stopped is not None:
            raise SafetyStop(self.stopped, self.targets.copy())
        try:
            self.watchdog.check()
            self.watchdog.feed()
            targets = self._act(reading, command)
            self.watchdog.check()  # a policy that takes too long is late as well
        except Exception as error:  # whatever it is, the robot gets targets that it can hold
            targets = self.hold(error)
            raise SafetyStop(str(self.stopped), targets) from error
        if self.stopped is None:  # the loop of the motors may have lost patience
            self.targets = targets
            self.steps += 1
        return self.targets.copy()

    def hold(self, reason: str | Exception) -> np.ndarray:
        """Stop acting until :meth:`reset` and return the targets of the safe posture.

        That is where the joints were at the last believable reading, within their ranges; the
        default pose if there was none. The drives' stiffness and damping keep it.
        """
        if self.stopped is None:
            if isinstance(reason, Exception) and not isinstance(reason, RunnerError):
                reason = f"{type(reason).__name__}: {str(reason)[:500]}"
            when = self.steps * self.contract["control"]["dt"]
            self.stopped = f"at control step {self.steps} ({when:.2f} s): {reason}"
            self.targets = self._posture.copy()
        return self.targets.copy()

    def follow(self) -> np.ndarray:
        """Return the targets that the drives must follow now; if a step is overdue, it holds."""
        try:
            self.watchdog.check()
        except RunnerError as error:
            self.hold(error)
        return self.targets.copy()

    def torques(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """Return the torques for the targets, within the limits, as drives that take angles do.

        Args:
            q: Joint angles now, rad.
            dq: Joint velocities now, rad/s.
        """
        targets = self.follow()
        try:
            q, dq = (vector("the drives'", name, values, self._names, -1e6, 1e6)
                     for name, values in (("q", q), ("dq", dq)))  # fmt: skip
        except Exception as error:
            self.hold(error)
            return np.zeros(len(targets))  # who does not know where a joint is must not push it
        demanded = self._stiffness * (targets - q) - self._damping * dq
        return np.clip(demanded, -self._torque_limit, self._torque_limit)

    def _act(self, reading: Reading, command: np.ndarray) -> np.ndarray:
        measured = {}
        for name, (entries, low, high) in self._readable.items():
            values = getattr(reading, name, None)
            measured[name] = vector("measured", name, values, entries, low, high)
            if name == "q":
                self._posture = np.clip(measured["q"], self._low, self._high)
        wanted = self._decide(Reading(**measured), command)
        low, high = self._target_low, self._target_high
        targets = np.clip(wanted, low, high)
        return vector("the joint", "target", targets, self._names, low, high)

    def _infer(self, feed: dict[str, np.ndarray]) -> np.ndarray:
        """Return the policy's output for a batch of one, if it is finite."""
        answer = self.session.run(None, feed)
        try:
            ((row,),) = answer  # one output for a batch of one
        except (TypeError, ValueError) as error:
            raise RunnerError(f"the policy's output is {shown(answer)}") from error
        return vector("the policy's", "output", row, self._names, -LARGEST, LARGEST)


def vector(
    whose: str, what: str, values: Any, entries: Sequence[Any], low: Any, high: Any
) -> np.ndarray:
    """Return values as an array of finite numbers within limits, or raise and name the first."""
    try:
        array = np.array(values)
    except (TypeError, ValueError) as error:  # e.g. lists of unequal lengths
        raise RunnerError(f"{whose} {what} is {shown(values)}") from error
    if array.dtype.kind not in "fiu" or array.shape != (len(entries),):
        raise RunnerError(
            f"{whose} {what} must be {len(entries)} numbers, but it is an array of shape "
            f"{array.shape} and type {array.dtype}"
        )
    if array.dtype != float:
        with np.errstate(all="ignore"):
            array = array.astype(float)
    allowed = (low <= array) & (array <= high)
    if not allowed.all():
        i = int(np.argmin(allowed))
        least, most = (np.broadcast_to(end, array.shape)[i] for end in (low, high))
        raise RunnerError(
            f"{whose} {what} of {entries[i]} is {array[i]:.6g}; it must be a number from "
            f"{least:.6g} to {most:.6g}"
        )
    return array
