"""Stepping many robots at once in MuJoCo's own threads.

:class:`RolloutEngine` keeps the state of all environments as arrays and lets ``mujoco.rollout``
step them; it runs on MuJoCo 3.3 and later. PD control happens inside the engine at the physics
rate: the actuators are position servos whose torque is clipped to the motor's limit.
:mod:`prism_motor.sim.warp_engine` offers the same attributes and methods with tensors on a device.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._checks import InputError
from prism_motor.sim.batch import RobotBatch
from prism_motor.sim.scene import SOLVER, import_mujoco

if TYPE_CHECKING:
    from torch import Tensor

    from prism_motor.sim.dynamics import Dynamics
    from prism_motor.sim.robots.robot import Robot

    Array = np.ndarray | Tensor
    """What methods take: arrays, or tensors on the CPU."""


_FASTEST = 1e3
"""No robot moves faster than this, m/s or rad/s."""


@dataclass(frozen=True)
class _Batch:
    """Some environments and the arrays through which ``mujoco.rollout`` steps them."""

    envs: np.ndarray
    models: list[Any]
    control: np.ndarray
    """(envs, steps, joints)"""
    states: np.ndarray
    """(envs, steps, state)"""
    readings: np.ndarray
    """(envs, steps, sensors)"""


class RolloutEngine(RobotBatch):
    """A batch of copies of one robot, stepped by ``mujoco.rollout``.

    Args:
        robot: The robot.
        num_envs: Number of environments.
        timestep: Physics step, s.
        substeps: Physics steps per call of :meth:`step`.
        solver: Version of the contact solver.
        threads: Simulation threads.

    Attributes:
        qpos: Positions, (N, 7 + joints): base position, base quaternion wxyz, joint angles.
        qvel: Velocities, (N, 6 + joints): base linear (world), base angular (body), joints.
    """

    def __init__(
        self,
        robot: Robot,
        num_envs: int,
        *,
        timestep: float,
        substeps: int,
        solver: int = SOLVER,
        threads: int = 1,
    ) -> None:
        mujoco = import_mujoco()
        from mujoco import rollout

        if threads < 1:
            raise InputError(f"RolloutEngine: threads must be at least 1, got {threads}.")
        super().__init__(robot, num_envs, timestep=timestep, substeps=substeps, solver=solver)
        data = [mujoco.MjData(self.model) for _ in range(threads)]
        # A few steps finish before a sleeping thread wakes up: the caller runs them itself.
        self._caller = (rollout.Rollout(nthread=0), data[:1])
        self._team = self._caller if threads == 1 else (rollout.Rollout(nthread=threads), data)
        self._columns: dict[tuple[str, ...], np.ndarray] = {}
        # State as mujoco.rollout wants it (time, qpos, qvel); qpos and qvel are views into it.
        joints = len(robot.joints)
        self._state = np.zeros((num_envs, 1 + 7 + joints + 6 + joints))
        self._readings = np.zeros((num_envs, self.model.nsensordata))
        self._targets = np.zeros((num_envs, joints))
        self._seconds = 0.0
        self._due = np.zeros(num_envs)
        self.qpos = self._state[:, 1 : 8 + joints]
        self.qvel = self._state[:, 8 + joints :]
        self.qpos[:] = self.model.qpos0
        self._stiffness = np.array([joint.stiffness for joint in robot.joints])
        self._damping = np.array([joint.damping for joint in robot.joints])
        self.torque_limit = self.model.actuator_forcerange[:, 1].copy()
        # Nominal dynamics, until they are changed.
        self._moving = np.arange(num_envs)
        self._models = [self.model] * num_envs
        self._step_batch = self._batch(self._moving, self.substeps)

    def set_dynamics(self, dynamics: Dynamics) -> None:
        """Give every environment its friction and masses; keeps the state."""
        self._models = list(self.vary(dynamics))
        self._step_batch = self._batch(self._moving, self.substeps)

    def step(self, targets: Array) -> None:
        """Hold the joint targets (N, joints) for ``substeps`` physics steps."""
        start = time.perf_counter()
        self._targets[:] = _array(targets)
        self._simulate(self._step_batch, self._team)
        self._due = self._state[:, 0] + self.substeps * self.timestep
        self._state[self._moving] = self._step_batch.states[:, -1]
        self._seconds += time.perf_counter() - start

    def _batch(self, envs: np.ndarray, steps: int) -> _Batch:
        return _Batch(
            envs,
            [self._models[i] for i in envs.tolist()],
            control=np.empty((len(envs), steps, self._targets.shape[1])),
            states=np.empty((len(envs), steps, self._state.shape[1])),
            readings=np.empty((len(envs), steps, self._readings.shape[1])),
        )

    def _simulate(self, batch: _Batch, workers: tuple[Any, list[Any]]) -> None:
        """Step a batch and store its last sensor readings, but not its states."""
        pool, data = workers
        batch.control[:] = self._targets[batch.envs, None]
        pool.rollout(
            batch.models, data, self._state[batch.envs], batch.control, skip_checks=True,
            nstep=batch.control.shape[1], state=batch.states, sensordata=batch.readings,
        )  # fmt: skip
        self._readings[batch.envs] = batch.readings[:, -1]

    def rest(self, envs: Array) -> None:
        """Stop stepping some environments from now on; they no longer cost anything."""
        self._moving = np.setdiff1d(self._moving, _array(envs))
        self._step_batch = self._batch(self._moving, self.substeps)

    def take_seconds(self) -> float:
        """Return the time spent stepping since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def check(self) -> None:
        """Raise if something in the simulation did not fit; here everything does."""

    def diverged(self) -> np.ndarray:
        """Return for every environment whether the last step made its state meaningless, (N,).

        MuJoCo itself resets such a state, and with it the clock.
        """
        finite = np.isfinite(self.qpos).all(1) & np.isfinite(self.qvel).all(1)
        fast = np.abs(self.qvel).max(1) > _FASTEST
        reset = np.abs(self._state[:, 0] - self._due) > self.timestep / 2
        reset[np.setdiff1d(np.arange(self.num_envs), self._moving)] = False
        return ~finite | fast | reset

    def set_state(self, envs: Array, qpos: Array, qvel: Array) -> None:
        """Place some environments in given states and read their sensors there."""
        envs, qpos, qvel = _array(envs), _array(qpos), _array(qvel)
        self.qpos[envs] = qpos
        self.qvel[envs] = qvel
        self._targets[envs] = qpos[:, 7:]
        # Sensors are evaluated before the integration, so one discarded step reads them here.
        self._simulate(self._batch(envs, 1), self._caller)

    def push(self, envs: Array, planar: Array, angular: Array) -> None:
        """Overwrite the base's planar velocity (N, 2; world) and angular velocity (N, 3; body)."""
        rows = _array(envs)
        self.qvel[rows, :2] = _array(planar)
        self.qvel[rows, 3:6] = _array(angular)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return all that later steps depend on; the caller stores the dynamics."""
        return {
            "state": self._state.copy(),
            "targets": self._targets.copy(),
            "readings": self._readings.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Resume from a saved state."""
        self._state[:] = _array(state["state"])
        self._targets[:] = _array(state["targets"])
        self._readings[:] = _array(state["readings"])

    def sensor(self, name: str) -> np.ndarray:
        """Return the last reading of a sensor, (N, dim), taken one physics step ago."""
        return self._readings[:, self._sensors[name]]

    def sensors(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the last readings of sensors of one dimension, (N, names, dim)."""
        if not names:
            return np.zeros((self.num_envs, 0, 3))
        if names not in self._columns:
            self._columns[names] = self.columns(names)
        return self._readings.take(self._columns[names], axis=1).reshape(
            self.num_envs, len(names), -1
        )

    def torque(self) -> np.ndarray:
        """Return the clipped torque of the PD law in the current state, (N, joints)."""
        joints = len(self.robot.joints)
        q, dq = self.qpos[:, 7:], self.qvel[:, 6 : 6 + joints]
        raw = self._stiffness * (self._targets - q) - self._damping * dq
        return raw.clip(-self.torque_limit, self.torque_limit, out=raw)


def _array(values: Array) -> np.ndarray:
    return values if isinstance(values, np.ndarray) else values.numpy()
