"""What every manipulation environment offers, whatever simulator is behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.tasks import Task

Array = NDArray[np.float64]
Image = NDArray[np.uint8]


@dataclass(frozen=True)
class Observation:
    """What a policy may see after a reset or a step."""

    state: NDArray[np.float32]
    """Proprioception, in the order of ``state_names``."""
    objects: NDArray[np.float32]
    """Poses of the things of the scene, in the order of ``object_names``; privileged."""
    images: dict[str, Image] = field(default_factory=dict)
    """Height x width x 3 by camera; empty when no images were asked for."""


@dataclass(frozen=True)
class Step:
    """What one control step led to."""

    observation: Observation
    success: bool
    """Whether the task is solved now."""
    timeout: bool
    """Whether the horizon is reached."""


@dataclass(frozen=True)
class Physics:
    """Physical quantities at the end of a control step, in world coordinates and SI units."""

    position: Array
    """End effector (3)."""
    quaternion: Array
    """End effector, w x y z (4)."""
    velocity: Array
    """End effector: linear, then angular (6)."""
    jacobian: Array
    """Of the end effector: linear, then angular, per arm joint (6 x joints); empty (6 x 0) where a
    mocap body moves the arm."""
    joint_positions: Array
    """Arm joints."""
    joint_velocities: Array
    """Arm joints."""
    joint_torques: Array
    """Of the actuators of the arm joints."""
    bias_torques: Array
    """What gravity, Coriolis and centrifugal forces ask of the arm joints."""
    contact_force: Array
    """Sum of the contact forces on the hand and its fingers (3)."""
    largest_force: float
    """Largest norm of the contact force on any one body of the hand."""


class Environment(Protocol):
    """One simulated scene with one arm."""

    task: Task
    state_names: tuple[str, ...]
    object_names: tuple[str, ...]
    action_names: tuple[str, ...]
    cameras: tuple[str, ...]
    image_size: int
    control_seconds: float
    """Time of one step."""
    initial_states: int
    """How many fixed initial states there are; they are for evaluation alone."""

    def reset(
        self, *, seed: int | None = None, initial_state: int | None = None, images: bool = True
    ) -> Observation:
        """Start an episode, at random from ``seed`` or at one of the fixed initial states."""
        ...

    def step(self, action: NDArray[np.floating], *, images: bool = True) -> Step:
        """Apply one action in [-1, 1]; draw images only when they are asked for.

        Going on after success or after the horizon is allowed.
        """
        ...

    def physics(self) -> Physics:
        """Measure physical quantities now."""
        ...

    def frame(self, size: int = 256) -> Image:
        """Draw the first camera at ``size``, for films."""
        ...

    def close(self) -> None:
        """Free the simulator and its renderer."""
        ...
