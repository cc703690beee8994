"""Contact of the hand with its surroundings: traces of episodes, and their measures.

F is the largest norm of the contact force on any one body of the hand, v the velocity and x the
position of the end effector, all at the end of a control step; t_c is the first step with
F >= 5 N. Signals have one value per control step of one episode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError
from prism_motor.manipulation.environment import Array, Physics

THRESHOLD = 5.0
"""Force that counts as contact, N."""

BEFORE, AFTER = 8, 8
"""Control steps shown before and after the first contact."""


@dataclass(frozen=True)
class ContactTrace:
    """Values at the end of every control step, in world coordinates and SI units."""

    control_seconds: float
    """Time of one step."""
    actions: Array
    """Executed actions (T x actions), after any correction."""
    position: Array
    """End effector (T x 3)."""
    displacement: Array
    """Displacement of the end effector during the step (T x 3)."""
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
        """Time since the start of the episode at the end of every step, s (T)."""
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
        """Add one step: the executed action and the measurements after it."""
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


def first_contact(force: Array, threshold: float = THRESHOLD) -> int | None:
    """Return the first step whose force reaches the threshold, or ``None``."""
    touching = np.flatnonzero(force >= threshold)
    return int(touching[0]) if len(touching) else None


def align(values: Array, at: int, before: int = BEFORE, after: int = AFTER) -> Array:
    """Return the steps ``at - before .. at + after``, NaN outside the episode.

    Args:
        values: (steps, ...).
        at: The step that goes to index ``before``.
        before: Steps before it.
        after: Steps after it.
    """
    window = np.full((before + 1 + after, *values.shape[1:]), np.nan)
    first, end = max(0, at - before), min(len(values), at + after + 1)
    window[first - at + before : end - at + before] = values[first:end]
    return window


def impulse(force: Array, dt: float) -> float:
    """Return ``sum_t F_t dt``, N s."""
    return float(force.sum() * dt)


def accumulated_impulse(force: Array, dt: float) -> Array:
    """Return ``sum_{s<=t} F_s dt`` since the start of the episode, N s: (T,) -> (T,)."""
    return force.cumsum() * dt


def contact_power(force: Array, velocity: Array) -> Array:
    """Return ``F_t |v_t|`` of every step, W: (T,), (T, 3) -> (T,).

    Norms, as in the paper: an upper bound on the mechanical power, reached when the hand moves
    along the force.
    """
    return force * np.linalg.norm(velocity, axis=-1)


def contact_work(force: Array, displacement: Array) -> Array:
    """Return ``F_t |x_t - x_{t-1}|`` of every step, J: (T,), (T, 3) -> (T,)."""
    return force * np.linalg.norm(displacement, axis=-1)


@dataclass(frozen=True)
class Contact:
    """Measures of contact; sums run from the first contact to the end of the episode."""

    step: int
    """First step that reaches the threshold force, t_c."""
    time: float
    """Its time since the start of the episode, s."""
    peak_force: float
    """Largest force from t_c on, N."""
    impulse: float
    """sum F dt, N s."""
    work: float
    """sum F |dx|, J."""
    mean_power: float
    """Mean of F |v|, W."""
    peak_power: float
    """Largest F |v|, W."""
    window_peak_force: float
    """Largest force from t_c to t_c + 8, N; the same time for fast and slow episodes."""
    window_impulse: float
    """sum F dt from t_c to t_c + 8, N s."""
    approach_speed: float | None
    """Mean speed over the 8 steps before t_c, m/s; ``None`` if t_c is the first step."""
    yielding_speed: float | None
    """Mean speed over the 8 steps after t_c, m/s; ``None`` if t_c is the last step."""


def diagnose(trace: ContactTrace, threshold: float = THRESHOLD) -> Contact | None:
    """Return the measures of an episode, or ``None`` without contact.

    Args:
        trace: The episode.
        threshold: Force that counts as contact, N.
    """
    at = first_contact(trace.largest_force, threshold)
    if at is None:
        return None
    dt, speed = trace.control_seconds, trace.speed
    force, near = trace.largest_force[at:], trace.largest_force[at : at + AFTER + 1]
    power = contact_power(force, trace.velocity[at:])
    before, after = speed[max(0, at - BEFORE) : at], speed[at + 1 : at + 1 + AFTER]
    return Contact(
        step=at,
        time=float(trace.time[at]),
        peak_force=float(force.max()),
        impulse=impulse(force, dt),
        work=float(contact_work(force, trace.displacement[at:]).sum()),
        mean_power=float(power.mean()),
        peak_power=float(power.max()),
        window_peak_force=float(near.max()),
        window_impulse=impulse(near, dt),
        approach_speed=float(before.mean()) if len(before) else None,
        yielding_speed=float(after.mean()) if len(after) else None,
    )
