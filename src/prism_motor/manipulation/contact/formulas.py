"""Formulas on signals of one episode, one value a control step.

F is the largest norm of the contact force on any one body of the hand, v the velocity and x the
position of the end effector, all at the end of a step; t_c is the first step with F >= 5 N.
"""

from __future__ import annotations

import numpy as np

from prism_motor.manipulation.environment import Array

THRESHOLD = 5.0
"""Force from which on the hand counts as touching something, N."""

BEFORE, AFTER = 8, 8
"""Control steps shown before and after the first contact."""


def first_contact(force: Array, threshold: float = THRESHOLD) -> int | None:
    """Return the first step whose force reaches the threshold, or ``None``."""
    touching = np.flatnonzero(force >= threshold)
    return int(touching[0]) if len(touching) else None


def align(values: Array, at: int, before: int = BEFORE, after: int = AFTER) -> Array:
    """Return the steps ``at - before .. at + after``, NaN outside the episode.

    Args:
        values: (steps, ...).
        at: The step that comes to lie at index ``before``.
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


def contact_power(force: Array, velocity: Array) -> Array:
    """Return ``F_t |v_t|`` of every step, W: (T,), (T, 3) -> (T,).

    Norms, as in the paper: an upper bound of the mechanical power, reached when the hand moves
    along the force.
    """
    return force * np.linalg.norm(velocity, axis=-1)


def contact_work(force: Array, displacement: Array) -> Array:
    """Return ``F_t |x_t - x_{t-1}|`` of every step, J: (T,), (T, 3) -> (T,)."""
    return force * np.linalg.norm(displacement, axis=-1)
