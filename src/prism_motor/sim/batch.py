"""What a batch of copies of one robot is on every engine: sizes, the model, what may vary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._checks import InputError
from prism_motor.sim.dynamics import Variation, sensor_columns
from prism_motor.sim.scene import build_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prism_motor.sim.dynamics import Dynamics
    from prism_motor.sim.robots.robot import Robot


class RobotBatch:
    """A batch of copies of one robot, which engines step.

    Friction and masses are those of the model until :meth:`set_dynamics` changes them.

    Args:
        robot: The robot.
        num_envs: Number of environments.
        timestep: Physics step, s.
        substeps: Physics steps per control step.
        solver: Version of the contact solver.

    Attributes:
        model: The nominal ``mjModel``.
        friction: Sliding friction of every robot's feet, (N,).
        base_mass: Mass added to every base, kg, (N,).
    """

    def __init__(
        self, robot: Robot, num_envs: int, *, timestep: float, substeps: int, solver: int
    ) -> None:
        if num_envs < 1 or substeps < 1:
            raise InputError(
                f"{type(self).__name__}: num_envs and substeps must be at least 1, got {num_envs} "
                f"and {substeps}."
            )
        self.robot, self.num_envs = robot, num_envs
        self.substeps, self.timestep = substeps, timestep
        self.model = build_model(robot, timestep=timestep, solver=solver)
        self._sensors = sensor_columns(self.model)
        self._variation = Variation(self.model, robot)
        self.friction = np.full(num_envs, self._variation.friction)
        self.base_mass = np.zeros(num_envs)

    def vary(self, dynamics: Dynamics) -> Iterator[Any]:
        """Note friction and masses, and yield the model of every environment."""
        self.friction, self.base_mass = dynamics.of_envs(self.num_envs)
        return self._variation.models(dynamics, self.num_envs)

    def columns(self, names: tuple[str, ...]) -> np.ndarray:
        """Return where the readings of sensors are, one sensor after the other."""
        return np.concatenate([np.r_[self._sensors[name]] for name in names])
