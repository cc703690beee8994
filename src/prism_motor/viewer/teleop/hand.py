"""The operator's hand: a target of the tip becomes joint targets, frame by frame."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError
from prism_motor.sim.so101.kinematics import (
    UnreachableError,
    against_gravity,
    gravity_torques,
    inverse,
)
from prism_motor.sim.so101.leaders import FASTEST, RAISING, PressingLeader
from prism_motor.sim.so101.twin import HOME, Twin
from prism_motor.sim.so101.units import ACTION_HIGH, ACTION_LOW, HIGH, LOW, to_lerobot, to_radians

Array = NDArray[np.float64]

_HELD_UP = 0.02
"""A press is given up when the tip is this far above where it is told to be, m."""
_DEEPEST = 0.1
"""Nor is it lowered further than this, m."""
_PAUSE = 5
"""Frames for which a button is kept pressed."""
_THERE = 1e-3
"""Joints count as arrived within this, rad."""


@dataclass(frozen=True)
class TipTarget:
    """Where the operator wants the tip."""

    position: tuple[float, float, float]
    """Tip of the fixed jaw, m."""
    pitch: float
    """How far the gripper points down, rad."""
    roll: float
    """Angle of wrist_roll, rad."""
    opening: float
    """Of the gripper, percent."""

    def angles(self) -> Array:
        """Return the joint angles (6, rad) for it, or raise if it cannot be reached."""
        values = (*self.position, self.pitch, self.roll, self.opening)
        if len(values) != 6 or not all(map(math.isfinite, values)):
            raise InputError(
                f"A target is a position (3), pitch, roll and opening, all finite; got {values}."
            )
        if not 0 <= self.opening <= 100:
            raise InputError(f"The gripper opens from 0 to 100 %, got {self.opening:g}.")
        opening = LOW[5] + self.opening / 100 * (HIGH[5] - LOW[5])
        return inverse(self.position, self.pitch, roll=self.roll, opening=opening)


class TipHand:
    """Moves the arm to targets of the tip, no faster than the scripted leaders.

    Like somebody who watches the tip, it aims higher the more the servos give way.

    Args:
        twin: The arm; :meth:`reset` follows each of its resets.

    Attributes:
        target: The last target that can be reached.
        said: What came of a press; empty if there is nothing to say.
    """

    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        told = to_radians(HOME)
        # Where the arm really rests: it sags below what it is told.
        rest = told - gravity_torques(told) / twin.servos.kp
        x, y, z = twin.tip.tolist()
        pitch = float(rest[1:4].sum())
        self.home = TipTarget((x, y, z), pitch, float(rest[4]), 0.0)
        self.reset()

    def reset(self) -> None:
        """Be at home, at rest."""
        self.target, self.said = self.home, ""
        self._goal = self._held = self.home.angles()
        self._press: Iterator[None] | None = None

    @property
    def pressing(self) -> bool:
        """Whether a press is under way."""
        return self._press is not None

    def move(self, target: TipTarget) -> None:
        """Aim at another target, or raise and keep the last one; a press ends."""
        self._aim(target)
        self._press, self.said = None, ""

    def _aim(self, target: TipTarget) -> None:
        self._goal = target.angles()
        self.target = target

    def press(self) -> None:
        """Lower the tip until something closes, wait a moment, and lift it again."""
        self._press, self.said = self._pressing(), ""

    def act(self) -> Array:
        """Return the next targets of the servos in LeRobot's units (6)."""
        if self._press is not None and next(self._press, True):
            self._press = None
        way = self._goal - self._held
        self._held = self._held + way * min(1.0, FASTEST / max(np.abs(way).max(), 1e-9))
        raised = against_gravity(self._held, self._twin.servos.kp)
        return np.clip(to_lerobot(raised), ACTION_LOW, ACTION_HIGH)

    def _pressing(self) -> Iterator[None]:
        # First arrive where the press begins.
        while np.abs(self._goal - self._held).max() > _THERE:
            yield
        start, before = self.target, self._presses()
        x, y, z = start.position
        # Lower the tip until a button closes, or something else holds it up.
        while self._presses() == before:
            height = self.target.position[2] - PressingLeader.lowering
            stuck = self._twin.tip[2] - height > _HELD_UP
            try:
                if stuck or z - height > _DEEPEST:
                    self.said = "Nothing closed under the tip."
                    break
                self._aim(replace(self.target, position=(x, y, height)))
            except UnreachableError:
                self.said = "The tip cannot go deeper here; nothing closed under it."
                break
            yield
        for _ in range(_PAUSE):
            yield
        # Lift it to where it was.
        while self.target.position[2] < z:
            height = min(z, self.target.position[2] + RAISING)
            self._aim(replace(self.target, position=(x, y, height)))
            yield

    def _presses(self) -> int:
        """Return how often the arm has closed a button, or touched the cube."""
        outcome = self._twin.outcome
        return outcome.pressed + outcome.double_clicks + outcome.wrong_presses
