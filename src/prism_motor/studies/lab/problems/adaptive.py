"""Adaptive control: imitate a controller that knows the plant, from the history alone.

The plant is a mass on a rail, driven by a motor of unknown strength, against viscous friction, with
a delay of whole steps. It follows a reference of constant acceleration. The exact controller knows
the plant and computes the force for the moment when its command will act; the network has to read
the plant off the last velocities and commands. The right answer is an estimate times a state.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from prism_motor.studies.fitting import Split
from prism_motor.studies.lab.problems.problem import Problem, independent

HISTORY, LONG_HISTORY = 8, 32
"""Number of past commands that the network sees."""
NOISE = 0.1
"""Standard deviation of the measurement of velocities in the long history, m/s."""
STEP = 0.1
"""Seconds between commands."""
_KP, _KD = 4.0, 3.0
_EXCITATION = 5.0
"""Standard deviation of past commands, N."""
_REFERENCE = np.array([[0.3], [1.5], [2.0]])
"""Standard deviations of error, velocity and acceleration of the reference."""
_RANGES = {"mass": (0.5, 2.0), "strength": (0.5, 1.5), "friction": (0.1, 2.0), "delay": (0, 4)}
"""What varies between rows, and how far; delays in steps, both ends included."""


@dataclass(frozen=True)
class Plant:
    """One plant per row."""

    mass: np.ndarray
    strength: np.ndarray
    friction: np.ndarray
    delay: np.ndarray

    @classmethod
    def draw(cls, generator: np.random.Generator, rows: int, varied: Collection[str]) -> Plant:
        """Draw plants that differ in some properties and have the nominal value of the others."""
        plant = cls(*(np.full(rows, value) for value in (1.0, 1.0, 0.5, 0)))
        for name in varied:
            low, high = _RANGES[name]
            whole = name == "delay"
            drawn = (
                generator.integers(int(low), int(high) + 1, rows)
                if whole
                else generator.uniform(low, high, rows)
            )
            plant = replace(plant, **{name: drawn})
        return plant

    def next_velocity(self, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the velocity one step later, under a command that acts now."""
        return v + STEP * (self.strength * u - self.friction * v) / self.mass


@dataclass(frozen=True)
class Situation:
    """Where plants are, and what they should do, one per row."""

    error: np.ndarray
    """Reference position minus position, m."""
    velocity: np.ndarray
    """Velocity, m/s."""
    wanted_velocity: np.ndarray
    """Velocity of the reference."""
    wanted_acceleration: np.ndarray
    """Its acceleration, m/s^2."""


def exact_command(plant: Plant, now: Situation, past: np.ndarray) -> np.ndarray:
    """Return the command of the controller that knows the plant.

    Args:
        plant: The plants.
        now: Their situation.
        past: The last commands (rows, at least the longest delay), newest last.
    """
    error, v, v_ref = now.error, now.velocity, now.wanted_velocity
    for ahead in range(int(plant.delay.max())):
        # What acts in `ahead` steps was commanded `delay - ahead` steps ago, if it still pends.
        pending = ahead < plant.delay
        column = np.where(pending, past.shape[1] - plant.delay + ahead, 0)
        command = past[np.arange(len(v)), column]
        error = np.where(pending, error + STEP * (v_ref - v), error)
        v = np.where(pending, plant.next_velocity(v, command), v)
        v_ref = np.where(pending, v_ref + STEP * now.wanted_acceleration, v_ref)
    acceleration = now.wanted_acceleration + _KD * (v_ref - v) + _KP * error
    return (plant.mass * acceleration + plant.friction * v_ref) / plant.strength


def _draw(
    varied: Collection[str],
    history: int,
    noise: float,
    generator: np.random.Generator,
    rows: int,
    reach: float,
) -> Split:
    plant = Plant.draw(generator, rows, varied)
    longest = int(_RANGES["delay"][1])
    commands = reach * _EXCITATION * generator.normal(size=(rows, longest + history))
    velocities = [reach * generator.normal(size=rows)]
    for k in range(history):
        acting = commands[np.arange(rows), longest + k - plant.delay]
        velocities.append(plant.next_velocity(velocities[-1], acting))
    error, v_ref, a_ref = reach * generator.normal(size=(3, rows)) * _REFERENCE
    now = Situation(error, velocities[-1], v_ref, a_ref)
    seen = commands[:, longest:]
    measured = np.stack(velocities, 1)
    if noise:  # the newest one is known: it is the past that has to be averaged
        measured[:, :-1] += noise * generator.normal(size=(rows, history))
    wanted = np.stack([error, v_ref, a_ref], 1)
    inputs = np.concatenate([wanted, measured, seen], axis=1)
    return Split(inputs, exact_command(plant, now, seen)[:, None])


def _problem(
    name: str,
    title: str,
    formula: str,
    factors: int,
    *varied: str,
    history: int = HISTORY,
    noise: float = 0.0,
) -> Problem:
    first_velocity, first_command = 3, 3 + history + 1
    return Problem(
        f"adaptive-{name}",
        title,
        formula,
        f"error, reference, the last {history + 1} velocities and {history} commands",
        (2 * history + 4, 1),
        factors,
        independent(
            lambda generator, rows, reach: _draw(varied, history, noise, generator, rows, reach),
        ),
        # A velocity and the command that led to it, as robots record them.
        tuple((first_velocity + k + 1, first_command + k) for k in range(history)),
    )


PAYLOAD = _problem("payload", "Unknown payload", "u = m̂ a + c v_ref", 2, "mass")
STRENGTH = _problem("strength", "Unknown motor strength", "u = (m a + c v_ref) / ŝ", 2, "strength")
FRICTION = _problem("friction", "Unknown friction", "u = m a + ĉ v_ref", 2, "friction")
DELAY = _problem("delay", "Unknown delay", "u = m a(t + d̂) + c v_ref(t + d̂)", 2, "delay")
EVERYTHING = _problem(
    "all",
    "Unknown payload, strength, friction and delay",
    "u = (m̂ a(t + d̂) + ĉ v_ref(t + d̂)) / ŝ",
    3,
    *_RANGES,
)

NOISY = _problem(
    "noisy",
    "Unknown payload and strength, long noisy history",
    "u = (m̂ a + c v_ref) / ŝ",
    2,
    "mass",
    "strength",
    history=LONG_HISTORY,
    noise=NOISE,
)
