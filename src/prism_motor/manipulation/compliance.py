"""Compliance at execution time: the MCC baselines, which make any policy yield to forces.

The force that the hand exerts is either read from the simulator or estimated from the torques of
the arm, which obeys ``M ddq + bias = tau + passive + J^T f_world``, where ``f_world`` is the force
of the world on the hand. The force of the hand on the world, ``f = -f_world``, then follows from

    tau - bias = J^T f + M ddq - passive

At rest the last two terms vanish except for dry friction, which can hide as much torque in every
joint; in motion they are mistaken for force: acceleration as inertia, joint damping as drag. A
force that does not act at the end effector adds a moment, part of which is mistaken for force too.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError, check_choice
from prism_motor._ranges import Bounds, Checked, above, between
from prism_motor.runs.configs import from_dict

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Array, Environment, Physics

SOURCES = ("actuators", "contacts")
"""Sources of the force: the arm's torques, or contacts that only a simulator knows."""


@dataclass(frozen=True)
class ComplianceConfig(Checked, section="compliance"):
    """How the executed translation yields to the force at the hand."""

    source: str = "actuators"
    """``actuators``: estimated from the torques of the arm; ``contacts``: from the simulator."""
    gain: Annotated[float, between(0, 1000)] = 0.015
    """Change of the action per newton, k_f."""
    delay: Annotated[int, between(0, 10_000)] = 2
    """Delay of the force in control steps, d."""
    smoothing: Annotated[float, Bounds(0, 1, high_open=True)] = 0.90
    """Weight of the past in the moving average of the force."""
    noise: Annotated[float, between(0, 1e6)] = 0.15
    """Standard deviation of the noise on each component of the force, N; before averaging."""
    damping: Annotated[float, above(0, 1e6)] = 1e-4
    """Added to the diagonal of J J^T, epsilon; unused with ``contacts``."""
    clip: Annotated[float, between(0, 1000)] = 0.05
    """Largest change to each component of the action."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("compliance source", self.source, SOURCES)


COMPLIANCE = {
    "mcc-sensorless": ComplianceConfig(),
    "mcc-oracle": ComplianceConfig(source="contacts", delay=0, noise=0.0),
}
"""The two baselines of the paper by name; the second cannot be deployed."""


def find_compliance(name: str) -> ComplianceConfig:
    """Return a baseline by name, or the tuned one from a file of ``prism compliance``."""
    if not name.endswith(".json"):
        return COMPLIANCE[check_choice("compliance baseline", name, COMPLIANCE)]
    try:
        return from_dict(ComplianceConfig, json.loads(Path(name).read_text())["chosen"], where=name)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{name} is not a file of prism compliance: {error}. Give such a file, or one of "
            f"{', '.join(COMPLIANCE)}."
        ) from error


def compliance_label(name: str) -> str:
    """Return the label of a baseline in tables and file names."""
    config = find_compliance(name)
    if name in COMPLIANCE:
        return name
    known = {one.source: label for label, one in COMPLIANCE.items()}
    return f"{known[config.source]}-tuned"


def exerted_force(jacobian: Array, torques: Array, damping: float = 1e-4) -> Array:
    """Solve ``(J J^T + damping I) f = J torques`` for the force, N.

    Args:
        jacobian: Of the end effector's position (3 x joints).
        torques: Of the joints, minus those needed for gravity and motion, N m.
        damping: Keeps the force finite where the arm is stretched out.
    """
    check_joints(jacobian)
    square = jacobian @ jacobian.T + damping * np.eye(len(jacobian))
    return np.asarray(np.linalg.solve(square, jacobian @ torques), dtype=np.float64)


def check_joints(jacobian: Array) -> None:
    """Raise unless an arm has joints whose torques reveal forces."""
    if not jacobian.size:
        raise InputError(
            "The force cannot be estimated: this arm has no actuated joints (a mocap body moves "
            "it). Use mcc-oracle, or a simulator with joints, e.g. LIBERO."
        )


def check_moves_hand(environment: Environment) -> None:
    """Raise unless actions move the hand along the axes of the world: that is what is corrected."""
    if environment.joint_targets:
        raise InputError(
            f"Actions of {environment.task.suite} are targets of joints, and the compliance "
            "baselines correct motions of the hand. Leave the corrector out."
        )


def estimated_force(physics: Physics, damping: float = 1e-4) -> Array:
    """Estimate the force of the hand on the world from the actuators, N (3)."""
    torques = physics.joint_torques - physics.bias_torques
    return exerted_force(physics.jacobian[:3], torques, damping)


def contact_force(physics: Physics) -> Array:
    """Return the force of the hand on the world from its contacts, N (3)."""
    return -physics.contact_force


class ComplianceCorrector:
    """``a[:3] - clip(k_f f_{t-d})``, where f is the force of the hand on the world.

    When the hand presses on a table, f points down and the action is raised. At every step the
    force is measured, noise is added and the moving average is updated; the correction uses the
    average from d steps ago, so the first d steps have none. Call :meth:`reset` before an episode.

    Args:
        config: The baseline.

    Attributes:
        force: The force behind the last correction, N (3).
    """

    def __init__(self, config: ComplianceConfig) -> None:
        self.config = config
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start a new episode, whose noise depends only on ``seed``."""
        self._rng = np.random.default_rng(seed)
        self._average: Array = np.zeros(3)
        self._late: deque[Array] = deque([np.zeros(3)] * self.config.delay)
        self.force: Array = np.zeros(3)

    def correct(self, action: NDArray[np.floating], physics: Physics) -> NDArray[np.floating]:
        """Return the action to execute; only its first three components change.

        Args:
            action: The policy's action; the first three components move the end effector along
                the axes of the world.
            physics: Measured now, before the action.
        """
        config = self.config
        if config.source == "actuators":
            force = estimated_force(physics, config.damping)
        else:
            force = contact_force(physics)
        force = force + config.noise * self._rng.standard_normal(3)
        self._average = config.smoothing * self._average + (1 - config.smoothing) * force
        self._late.append(self._average)
        self.force = self._late.popleft()
        change = np.clip(config.gain * self.force, -config.clip, config.clip)
        executed = np.array(action)
        # Clip first, so that an action out of range does not cancel the correction.
        executed[:3] = np.clip(np.clip(executed[:3], -1, 1) - change, -1, 1)
        return executed


def make_corrector(name: str, environment: Environment) -> ComplianceCorrector:
    """Return a baseline by name, or raise if it cannot work in an environment.

    Args:
        name: One of :data:`COMPLIANCE`, or a file of ``prism compliance``.
        environment: Where it will act; gets reset.
    """
    check_moves_hand(environment)
    config = find_compliance(name)
    if config.source == "actuators":
        environment.reset(seed=0, images=False)
        check_joints(environment.physics().jacobian)
    return ComplianceCorrector(config)


@dataclass(frozen=True)
class ComplianceGrid:
    """Values to try, in every combination."""

    gain: tuple[float, ...] = (0.005, 0.015, 0.045)
    """Change of the action per newton."""
    smoothing: tuple[float, ...] = (0.8, 0.9)
    """Weight of the past in the moving average."""
    clip: tuple[float, ...] = (0.05,)
    """Largest change to each component of the action."""

    def candidates(self, base: ComplianceConfig) -> list[ComplianceConfig]:
        """Return all settings; delay and noise are given and stay those of the base."""
        return [
            replace(base, gain=gain, smoothing=smoothing, clip=clip)
            for gain, smoothing, clip in product(self.gain, self.smoothing, self.clip)
        ]


@dataclass(frozen=True)
class ComplianceTrial:
    """The result of one setting on the validation split."""

    config: ComplianceConfig
    """The setting."""
    episodes: int
    """Episodes, the same for all settings."""
    successes: int
    """Episodes that solved the task."""
    impulse: float | None
    """Mean contact impulse of successful episodes with contact, N s; ``None`` without any."""


def choose_trial(trials: Sequence[ComplianceTrial]) -> ComplianceTrial:
    """Return the setting with the most successes; ties go to the lowest impulse.

    If both are equal, the first wins; an unknown impulse loses.
    """
    if not trials:
        raise InputError("A sweep needs at least one setting.")
    return min(trials, key=_badness)


def _badness(trial: ComplianceTrial) -> tuple[float, float]:
    impulse = float("inf") if trial.impulse is None else trial.impulse
    return -trial.successes / trial.episodes, impulse
