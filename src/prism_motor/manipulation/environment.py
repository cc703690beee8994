"""Interfaces of manipulation environments and of those that act in them.

A suite (:mod:`prism_motor.manipulation.tasks`) makes environments and experts; all other code only
depends on the classes of this file. Most environments are easiest to write as a
:class:`BasicEnvironment`: four short methods; seeding, step counts and checks are done for you.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError, check_size

if TYPE_CHECKING:
    from prism_motor.manipulation.tasks import Task

Array = NDArray[np.float64]
Image = NDArray[np.uint8]

SMALLEST_RANGE = 0.01
"""Narrower ranges (m, rad) of demonstrations are widened to this: scaled to the whole range, values
that hardly move would turn a disturbance of a millimetre into the strongest signal."""

_EVALUATION, _RANDOM = 0, 1
"""Random streams, so that fixed initial states and all other resets never coincide."""


@dataclass(frozen=True)
class Observation:
    """What a policy may see after a reset or a step."""

    state: NDArray[np.float32]
    """Proprioception, in the order of ``state_names``."""
    objects: NDArray[np.float32]
    """Poses of the objects in the scene, in the order of ``object_names``; privileged."""
    images: dict[str, Image] = field(default_factory=dict)
    """Height x width x 3 by camera; empty if no images were requested."""


@dataclass(frozen=True)
class Transition:
    """The result of one control step."""

    observation: Observation
    """Observation after the step."""
    success: bool
    """Whether the task is solved now."""
    timeout: bool
    """Whether the horizon is reached."""


@dataclass(frozen=True)
class Physics:
    """Physical quantities at the end of a control step, in world coordinates and SI units.

    Only the position is required; what a simulator does not provide stays zero or empty.
    """

    position: Array
    """End effector (3)."""
    quaternion: Array = field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0]))
    """End effector, w x y z (4)."""
    velocity: Array = field(default_factory=lambda: np.zeros(6))
    """End effector: linear, then angular (6)."""
    jacobian: Array = field(default_factory=lambda: np.zeros((6, 0)))
    """Of the end effector: linear, then angular, per arm joint (6 x joints); empty (6 x 0) where a
    mocap body moves the arm."""
    joint_positions: Array = field(default_factory=lambda: np.zeros(0))
    """Arm joints."""
    joint_velocities: Array = field(default_factory=lambda: np.zeros(0))
    """Arm joints."""
    joint_torques: Array = field(default_factory=lambda: np.zeros(0))
    """Of the actuators of the arm joints."""
    bias_torques: Array = field(default_factory=lambda: np.zeros(0))
    """Torques on the arm joints due to gravity, Coriolis and centrifugal forces."""
    contact_force: Array = field(default_factory=lambda: np.zeros(3))
    """Sum of the contact forces on the hand and its fingers (3)."""
    largest_force: float = 0.0
    """Largest norm of the contact force on any one body of the hand."""


class Environment(ABC):
    """One simulated scene with one arm."""

    task: Task
    state_names: tuple[str, ...]
    object_names: tuple[str, ...]
    action_names: tuple[str, ...]
    """One called ``gripper`` or ``gripper.pos`` opens and closes the fingers; the others move the
    hand or the joints of the arm."""
    cameras: tuple[str, ...]
    image_size: int
    control_seconds: float
    """Time of one step."""
    initial_states: int
    """Number of fixed initial states, which are used only for evaluation."""
    joint_targets: bool = False
    """Whether actions are targets of the joints; else they move the hand."""
    noise_unit: float = 1.0
    """Noise on proprioception of size 1 has this standard deviation, in the units of the state; the
    sizes of perturbations are meant for m and rad."""
    smallest_range: float = SMALLEST_RANGE
    """Narrower ranges of state and action in demonstrations are widened to this, in their units."""

    @property
    def action_low(self) -> NDArray[np.float32]:
        """Lowest action that is executed, per component; default: -1."""
        return np.full(len(self.action_names), -1.0, dtype=np.float32)

    @property
    def action_high(self) -> NDArray[np.float32]:
        """Highest action that is executed, per component; default: 1."""
        return np.full(len(self.action_names), 1.0, dtype=np.float32)

    def holding_action(self) -> NDArray[np.float32]:
        """Return the action that changes nothing now; default: zeros, for actions that move."""
        return np.zeros(len(self.action_names), dtype=np.float32)

    @abstractmethod
    def reset(
        self, *, seed: int | None = None, initial_state: int | None = None, images: bool = True
    ) -> Observation:
        """Start an episode, at random from ``seed`` or at one of the fixed initial states."""

    @abstractmethod
    def step(self, action: NDArray[np.floating], *, images: bool = True) -> Transition:
        """Apply one action within the limits; render images only if requested.

        Stepping on after success or the horizon is allowed.
        """

    @abstractmethod
    def physics(self) -> Physics:
        """Return the current physical quantities."""

    @abstractmethod
    def commanded_pose(self, before: Physics, action: NDArray[np.floating]) -> tuple[Array, Array]:
        """Return the position and quaternion (w x y z) that the last step commanded.

        Args:
            before: Measured before that step.
            action: The executed action.
        """

    def frame(self, size: int = 256) -> Image:
        """Render the first camera at ``size``, for videos."""
        raise InputError(f"{self.task.suite} has no camera for videos.")

    def close(self) -> None:  # noqa: B027  # most have nothing to free
        """Free the simulator and its renderer."""

    def check_initial_state(self, number: int | None) -> None:
        """Raise unless there is a fixed initial state of that number; ``None`` is valid."""
        if number is not None and not 0 <= number < self.initial_states:
            raise InputError(
                f"{self.task.key} has initial states 0 to {self.initial_states - 1}, got {number}."
            )

    def check_action(self, action: NDArray[np.floating]) -> None:
        """Raise unless an action has the right size and is finite."""
        count = len(self.action_names)
        if action.shape != (count,):
            raise InputError(
                f"An action of {self.task.suite} has {count} values, got shape {action.shape}."
            )
        if not np.isfinite(action).all():
            raise InputError(f"An action must be finite, got {action}.")


class BasicEnvironment(Environment):
    """An environment from four methods: place, advance, observe and physics.

    Set ``state_names``, ``object_names``, ``action_names`` and ``control_seconds`` as class
    attributes or before the first reset. Episodes depend only on their seed as long as
    :meth:`place` draws from the generator it is given and resets all state.

    Args:
        task: Which task.
        cameras: Which cameras to render.
        image_size: Side of the square images, pixels.
        seed: Default seed of resets.
    """

    initial_states = 50

    def __init__(
        self, task: Task, *, cameras: Sequence[str] = (), image_size: int = 128, seed: int = 0
    ) -> None:
        self.task = task
        self.cameras = tuple(cameras)
        self.image_size = check_size(type(self).__name__, "image_size", image_size)
        self._seeds = np.random.default_rng(seed)
        self._steps = 0

    @abstractmethod
    def place(self, random: np.random.Generator) -> None:
        """Put everything in place for the start of an episode."""

    @abstractmethod
    def advance(self, action: NDArray[np.float32]) -> bool | np.bool_:
        """Simulate one control step; return whether the task is solved now."""

    @abstractmethod
    def observe(self, images: bool) -> Observation:
        """Return the current observation, with images if requested."""

    def reset(
        self, *, seed: int | None = None, initial_state: int | None = None, images: bool = True
    ) -> Observation:
        """Start an episode, at random from ``seed`` or at one of the fixed initial states."""
        self.check_initial_state(initial_state)
        if initial_state is not None:
            entropy = [_EVALUATION, initial_state]
        else:
            entropy = [_RANDOM, int(self._seeds.integers(2**62)) if seed is None else seed]
        self.place(np.random.default_rng([*entropy, self.task.index]))
        self._steps = 0
        return self.observe(images)

    def step(self, action: NDArray[np.floating], *, images: bool = True) -> Transition:
        """Apply one action within the limits; render images only if requested."""
        action = np.asarray(action, dtype=np.float32)
        self.check_action(action)
        success = self.advance(np.clip(action, self.action_low, self.action_high))
        self._steps += 1
        return Transition(self.observe(images), bool(success), self._steps >= self.task.horizon)


class NoExpertError(InputError):
    """A task has no scripted expert."""


class Expert(ABC):
    """A scripted policy that uses the privileged state of its environment.

    :func:`prism_motor.manipulation.tasks.make_expert` returns the expert of an environment.

    Args:
        environment: The environment it acts in.
    """

    def __init__(self, environment: Any) -> None:
        self.environment = environment

    def reset(self) -> None:  # noqa: B027  # many have no state
        """Clear all state; called after every reset of the environment."""

    @abstractmethod
    def act(self) -> NDArray[np.floating]:
        """Return the next action, within the limits, for the state of the environment."""


class HandlingActor(Protocol):
    """A policy acting in an episode."""

    def reset(self, seed: int) -> None:
        """Start an episode, whose randomness depends only on ``seed``."""
        ...

    def wants_images(self) -> bool:
        """Return whether the images of the next observation will be used."""
        ...

    def act(self, observation: Observation) -> NDArray[np.floating]:
        """Return the next action."""
        ...


class Corrector(Protocol):
    """Changes the actions of any policy while they are executed."""

    def reset(self, seed: int) -> None:
        """Start an episode, whose randomness depends only on ``seed``."""
        ...

    def correct(self, action: NDArray[np.floating], physics: Physics) -> NDArray[np.floating]:
        """Return the action to execute, given the measurements before it."""
        ...
