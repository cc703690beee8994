"""One episode, step by step: forces and motion of the hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prism_motor._errors import InputError
from prism_motor.manipulation.environment import Array, Physics


@dataclass(frozen=True)
class ContactTrace:
    """Values at the end of every control step, in world coordinates and SI units."""

    control_seconds: float
    """Time of one step."""
    actions: Array
    """What was executed (T x actions), after any correction."""
    position: Array
    """End effector (T x 3)."""
    displacement: Array
    """How far the end effector moved during the step (T x 3)."""
    velocity: Array
    """End effector, linear (T x 3)."""
    force: Array
    """Sum of the contact forces on the hand (T x 3)."""
    largest_force: Array
    """Largest norm of the contact force on any one body of the hand (T)."""

    def __len__(self) -> int:
        return len(self.largest_force)

    @property
    def time(self) -> Array:
        """Time at the end of every step since the episode began, s (T)."""
        return np.arange(1, len(self) + 1, dtype=np.float64) * self.control_seconds

    @property
    def speed(self) -> Array:
        """Speed of the end effector, m/s (T)."""
        return np.linalg.norm(self.velocity, axis=-1)


class TraceRecorder:
    """Collects a :class:`ContactTrace` while an episode runs.

    Args:
        control_seconds: Time of one step.
        start: Measured before the first step.
    """

    def __init__(self, control_seconds: float, start: Physics) -> None:
        self.control_seconds = control_seconds
        self._start = start.position
        self._steps: list[tuple[Array, Physics]] = []

    def add(self, action: NDArray[np.floating], physics: Physics) -> None:
        """Note one step: what was executed, and what was measured after it."""
        self._steps.append((np.array(action, dtype=np.float64), physics))

    def finish(self) -> ContactTrace:
        """Return the whole episode."""
        if not self._steps:
            raise InputError("A contact trace needs at least one step.")
        measured = [physics for _, physics in self._steps]
        position = np.stack([physics.position for physics in measured])
        return ContactTrace(
            control_seconds=self.control_seconds,
            actions=np.stack([action for action, _ in self._steps]),
            position=position,
            displacement=np.diff(position, axis=0, prepend=self._start[None]),
            velocity=np.stack([physics.velocity[:3] for physics in measured]),
            force=np.stack([physics.contact_force for physics in measured]),
            largest_force=np.array([physics.largest_force for physics in measured]),
        )
