"""What turns behind the emulated bus: positions of six joints that follow their goals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from prism_motor.integrations.feetech.registers import TURN

NO_LOAD_SPEED = 45 / 60 * TURN
"""Ticks a second of an STS3215 (12 V) that lifts nothing: 45 turns a minute."""


@dataclass(frozen=True)
class Drive:
    """What the registers of a servo tell its motor to do."""

    goal: float
    """Encoder ticks to go to."""
    torque: bool
    """Whether the motor is on; if not, the joint can be turned by hand."""
    gain: float = 16.0
    """P coefficient; the factory's is 32, LeRobot writes 16."""
    limit: float = 1.0
    """Share of the torque that the servo may use."""


class Servos(Protocol):
    """Joints behind a bus; positions are encoder ticks, before any homing offset."""

    def positions(self) -> Sequence[float]:
        """Return where the joints are now."""
        ...

    def drive(self, joint: int, drive: Drive) -> None:
        """Take what a servo's motor has to do from now on."""
        ...

    def close(self) -> None:
        """Give back what was taken."""
        ...


class FirstOrderServos:
    """Joints without a load: each approaches its goal exponentially, at no more than full speed.

    They move when somebody looks, exactly, so that no thread is needed and nothing depends on how
    often that is.

    Args:
        start: Ticks at the beginning.
        time_constant: Seconds in which 63 % of a small step are done.
        clock: Seconds that pass.
    """

    def __init__(
        self,
        start: Sequence[float],
        *,
        time_constant: float = 0.03,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._positions = [float(one) for one in start]
        self._drives = [Drive(one, torque=False) for one in self._positions]
        self._time_constant, self._clock = time_constant, clock
        self._seen = clock()

    def positions(self) -> list[float]:
        """Return where the joints are now."""
        self._advance()
        return list(self._positions)

    def drive(self, joint: int, drive: Drive) -> None:
        """Take what a servo's motor has to do from now on."""
        self._advance()
        self._drives[joint] = drive

    def turn(self, joint: int, ticks: float) -> None:
        """Turn a joint by hand; it stays there only while its motor is off."""
        self._advance()
        self._positions[joint] = float(ticks)

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""

    def _advance(self) -> None:
        now = self._clock()
        passed, self._seen = now - self._seen, now
        for joint, drive in enumerate(self._drives):
            if drive.torque:
                left = drive.goal - self._positions[joint]
                self._positions[joint] = drive.goal - math.copysign(self._left(left, passed), left)

    def _left(self, distance: float, passed: float) -> float:
        """Return the distance that is left after some time."""
        distance = abs(distance)
        # At full speed until the exponential is slower, then along it.
        knee = NO_LOAD_SPEED * self._time_constant
        if distance > knee:
            fast = min(passed, (distance - knee) / NO_LOAD_SPEED)
            distance -= fast * NO_LOAD_SPEED
            passed -= fast
        return distance * math.exp(-passed / self._time_constant)


class HandledServos(FirstOrderServos):
    """A leader arm in a hand that knows where to go: while a motor is off, its joint follows it.

    Args:
        hand: Returns the ticks of all joints after some seconds.
        clock: Seconds that pass.
    """

    def __init__(
        self,
        hand: Callable[[float], Sequence[float]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.hand = hand
        self._began = clock()
        super().__init__(hand(0.0), clock=clock)

    def _advance(self) -> None:
        super()._advance()
        held = self.hand(self._seen - self._began)
        for joint, drive in enumerate(self._drives):
            if not drive.torque:
                self._positions[joint] = float(held[joint])
