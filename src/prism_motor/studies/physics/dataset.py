"""States of the arm under smooth random torques, and their physics, split by episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prism_motor._checks import InputError
from prism_motor.studies.fitting import Split, Splits
from prism_motor.studies.physics.robot import (
    JOINTS,
    TORQUE_LIMIT,
    Model,
    engine,
    load_arm,
    measure,
    target_columns,
)

if TYPE_CHECKING:
    from prism_motor.studies.physics.config import PhysicsConfig

_STIFFNESS = np.array([8.0, 30.0, 14.0, 3.0])
_DAMPING = np.array([1.0, 3.0, 1.4, 0.25])
_SINES = 4
_SINE_HERTZ = (0.5, 4.0)
_WAYPOINT_SECONDS = 0.8


@dataclass(frozen=True)
class Dataset(Splits):
    """The data of a study: inputs are :func:`signal_names`, targets :func:`measure`'s columns.

    The extrapolation part is the test states with scaled velocities and torques.
    """

    rows_per_episode: int
    """States per episode, to extract single episodes."""


def make_dataset(config: PhysicsConfig, on_episode: Callable[[], None] | None = None) -> Dataset:
    """Simulate all episodes; ``on_episode`` is called after each one."""
    model = load_arm()
    sizes = {
        "train": config.train_episodes,
        "validation": config.validation_episodes,
        "test": config.test_episodes,
    }
    generators = iter(np.random.default_rng(config.data_seed).spawn(sum(sizes.values())))
    splits: dict[str, Split] = {}
    for name, episodes in sizes.items():
        parts = []
        for _ in range(episodes):
            states = simulate_episode(
                model, next(generators), config.episode_seconds, config.sample_seconds
            )
            parts.append(_label(model, states))
            if on_episode is not None:
                on_episode()
        splits[name] = Split(
            np.concatenate([part.inputs for part in parts]),
            np.concatenate([part.targets for part in parts]),
        )
    _check_variety(splits)
    rows = len(splits["test"].inputs) // config.test_episodes
    faster = splits["test"].inputs.copy()
    faster[:, len(JOINTS) :] *= config.extrapolation
    return Dataset(**splits, extrapolation=_label(model, faster), rows_per_episode=rows)


def simulate_episode(
    model: Model, generator: np.random.Generator, seconds: float, sample_seconds: float
) -> np.ndarray:
    """Drive the arm for one episode; returns its states (rows, 3 * joints).

    The torque is a sum of random sines, a spring-damper pull along random waypoints and a weight
    compensation. Some waypoints lie below the table, so the hand touches it now and then.
    """
    mujoco = engine()
    steps = round(seconds / model.opt.timestep)
    stride = max(1, round(sample_seconds / model.opt.timestep))
    start = _pose_above_table(model, generator)
    waypoints = _waypoints(generator, steps, model, start)
    waves = _waves(generator, steps, model.opt.timestep)

    data = mujoco.MjData(model)
    data.qpos[:] = start
    mujoco.mj_forward(model, data)
    states = np.empty((-(-steps // stride), 3 * len(JOINTS)))
    for step in range(steps):
        pull = _STIFFNESS * (waypoints[step] - data.qpos) - _DAMPING * data.qvel
        torque = np.clip(pull + waves[step] + data.qfrc_bias, -TORQUE_LIMIT, TORQUE_LIMIT)
        if step % stride == 0:
            states[step // stride] = np.concatenate([data.qpos, data.qvel, torque])
        data.ctrl[:] = torque
        mujoco.mj_step(model, data)
    return states


def _check_variety(splits: dict[str, Split]) -> None:
    """Reject data in which a target is constant: its unexplained share would be undefined."""
    for name, split in splits.items():
        for target, columns in target_columns().items():
            if (split.targets[:, columns].std(0) == 0).any():
                raise InputError(
                    f"The {name} episodes have a single value of {target} (no contact at all?). "
                    f"Use more or longer episodes: {name}_episodes or episode_seconds."
                )


def _label(model: Model, states: np.ndarray) -> Split:
    q, dq, tau = np.split(states, 3, axis=1)
    return Split(states, measure(model, q, dq, tau))


def _pose_above_table(model: Model, generator: np.random.Generator) -> np.ndarray:
    """Draw poses until the hand is clear of the table."""
    mujoco = engine()
    data = mujoco.MjData(model)
    low, high = model.jnt_range.T
    while True:
        data.qpos[:] = generator.uniform(low, high)
        mujoco.mj_forward(model, data)
        if data.ncon == 0 and data.site("hand").xpos[2] > 0.05:
            return data.qpos.copy()


def _waypoints(
    generator: np.random.Generator, steps: int, model: Model, start: np.ndarray
) -> np.ndarray:
    """Piecewise linear reference from ``start`` through random joint positions."""
    at = np.arange(steps) * model.opt.timestep / _WAYPOINT_SECONDS
    count = int(at[-1]) + 2
    low, high = model.jnt_range.T
    knots = generator.uniform(low, high, (count, len(low)))
    knots[0] = start
    return np.stack([np.interp(at, np.arange(count), knot) for knot in knots.T], axis=1)


def _waves(generator: np.random.Generator, steps: int, dt: float) -> np.ndarray:
    """Sums of random sines scaled to the torque limits: (steps, joints)."""
    shape = (_SINES, len(JOINTS))
    frequency = generator.uniform(*_SINE_HERTZ, shape)
    phase = generator.uniform(0, 2 * np.pi, shape)
    amplitude = generator.uniform(0, 0.6 / np.sqrt(_SINES), shape) * TORQUE_LIMIT
    time = np.arange(steps)[:, None, None] * dt
    return (amplitude * np.sin(2 * np.pi * frequency * time + phase)).sum(1)
