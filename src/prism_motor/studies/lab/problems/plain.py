"""Control laws in closed form: gain-scheduled tracking, a linear law and a relay."""

from __future__ import annotations

import numpy as np

from prism_motor.studies.fitting import Split
from prism_motor.studies.lab.problems.problem import Problem, independent

_GAINS = np.random.default_rng(0).normal(size=(24, 6)) / np.sqrt(24)
"""The feedback gains of the linear law: 24 states, 6 commands."""

_SURFACES = np.random.default_rng(1).normal(size=(12, 4)) / np.sqrt(12)
"""The switching surfaces of the relay: 12 states, 4 commands."""

_TRACKING = (1.0, 4.0, 3.0)
"""Gains on the errors ahead, aside and in heading."""


def tracking_law(state: np.ndarray) -> np.ndarray:
    """Return speed, yaw rate and lateral acceleration that bring a vehicle onto its reference.

    The law of Kanayama et al. (1990): gains on the lateral and the heading error grow with the
    reference speed. Rows are reference speed and yaw rate, errors ahead, aside and in heading.
    """
    v_ref, omega_ref, ahead, aside, heading = state.T
    k_ahead, k_aside, k_heading = _TRACKING
    v = v_ref * np.cos(heading) + k_ahead * ahead
    omega = omega_ref + v_ref * (k_aside * aside + k_heading * np.sin(heading))
    return np.stack([v, omega, v * omega], axis=1)


def _draw_tracking(generator: np.random.Generator, rows: int, reach: float) -> Split:
    high = np.array([2.0, 1.5, 0.5, 0.5, 1.0])
    low = np.array([0.2, -1.5, -0.5, -0.5, -1.0])
    state = reach * generator.uniform(low, high, (rows, len(high)))
    return Split(state, tracking_law(state))


def _draw_linear(generator: np.random.Generator, rows: int, reach: float) -> Split:
    state = reach * generator.normal(size=(rows, len(_GAINS)))
    return Split(state, -state @ _GAINS)


def _draw_relay(generator: np.random.Generator, rows: int, reach: float) -> Split:
    state = reach * generator.normal(size=(rows, len(_SURFACES)))
    return Split(state, -np.sign(state @ _SURFACES))


GAIN_SCHEDULE = Problem(
    "gain-schedule",
    "Gain-scheduled tracking",
    "v, ω_ref + v_ref (k_y y + k_θ sin θ), v · ω",
    "reference speed and yaw rate, three tracking errors",
    (5, 3),
    3,
    independent(_draw_tracking),
)
LINEAR = Problem(
    "linear",
    "Linear feedback",
    "u = −K x",
    "24 states",
    _GAINS.shape,
    1,
    independent(_draw_linear),
)
BANG_BANG = Problem(
    "bang-bang",
    "Bang-bang control",
    "u = −sign(S x)",
    "12 states",
    _SURFACES.shape,
    1,
    independent(_draw_relay),
)
