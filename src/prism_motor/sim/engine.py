"""Stepping many robots at once in MuJoCo's own threads.

:class:`RolloutEngine` keeps the state of all environments as arrays and lets ``mujoco.rollout``
step them; it runs on MuJoCo 3.3 and later. PD control happens inside the engine at the physics
rate: the actuators are position servos whose torque is clipped to the motor's limit. A GPU engine
would offer the same attributes and methods with tensors on its device.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._checks import InputError
from prism_motor.sim.scene import build_model, colliding_geoms, import_mujoco

if TYPE_CHECKING:
    from prism_motor.sim.robots.robot import Robot


@dataclass(frozen=True)
class Dynamics:
    """What differs between environments; scalars apply to all of them."""

    friction: np.ndarray | float = 1.0
    """Sliding friction between feet and ground."""
    base_mass: np.ndarray | float = 0.0
    """Mass added to the base, kg; its inertia scales with its mass."""
    mass_scale: np.ndarray | float = 1.0
    """Factor on all masses and inertias; of every link alone if it is (N, links)."""
    shifted: str = ""
    """Body whose centre of mass is shifted, if any."""
    shift: np.ndarray | float = 0.0
    """How far, (N, 3) in the body's axes, m."""


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


class RolloutEngine:
    """A batch of copies of one robot, stepped by ``mujoco.rollout``.

    Args:
        robot: The robot.
        num_envs: Number of environments.
        timestep: Physics step, s.
        substeps: Physics steps per call of :meth:`step`.
        threads: Simulation threads.

    Friction and masses are those of the model until :meth:`set_dynamics` changes them.

    Attributes:
        qpos: Positions, (N, 7 + joints): base position, base quaternion wxyz, joint angles.
        qvel: Velocities, (N, 6 + joints): base linear (world), base angular (body), joints.
        model: The nominal ``mjModel``.
    """

    def __init__(
        self,
        robot: Robot,
        num_envs: int,
        *,
        timestep: float,
        substeps: int,
        threads: int = 1,
    ) -> None:
        mujoco = import_mujoco()
        from mujoco import rollout

        if num_envs < 1 or substeps < 1 or threads < 1:
            raise InputError(
                "RolloutEngine: num_envs, substeps and threads must be at least 1, got "
                f"{num_envs}, {substeps} and {threads}."
            )
        self.robot = robot
        self.num_envs = num_envs
        self.substeps = substeps
        self.timestep = timestep
        self.model = build_model(robot, timestep=timestep)
        data = [mujoco.MjData(self.model) for _ in range(threads)]
        # A few steps finish before a sleeping thread wakes up: the caller runs them itself.
        self._caller = (rollout.Rollout(nthread=0), data[:1])
        self._team = self._caller if threads == 1 else (rollout.Rollout(nthread=threads), data)
        self._sensors = _sensor_columns(self.model)
        self._columns: dict[tuple[str, ...], np.ndarray] = {}
        # State as mujoco.rollout wants it (time, qpos, qvel); qpos and qvel are views into it.
        joints = len(robot.joints)
        self._state = np.zeros((num_envs, 1 + 7 + joints + 6 + joints))
        self._readings = np.zeros((num_envs, self.model.nsensordata))
        self._targets = np.zeros((num_envs, joints))
        self._seconds = 0.0
        self.qpos = self._state[:, 1 : 8 + joints]
        self.qvel = self._state[:, 8 + joints :]
        self.qpos[:] = self.model.qpos0
        self._stiffness = np.array([joint.stiffness for joint in robot.joints])
        self._damping = np.array([joint.damping for joint in robot.joints])
        self.torque_limit = self.model.actuator_forcerange[:, 1].copy()
        # Nominal dynamics, until they are changed.
        self._moving = np.arange(num_envs)
        self._soles = colliding_geoms(self.model, robot.feet)
        self._base = self.model.body(robot.base).id
        self._links = self.model.nbody - 1
        self._models = [self.model] * num_envs
        self.friction = np.full(num_envs, self.model.geom_friction[self._soles, 0].mean())
        self.base_mass = np.zeros(num_envs)
        self._step_batch = self._batch(self._moving, self.substeps)

    def set_dynamics(self, dynamics: Dynamics) -> None:
        """Give every environment its friction and masses; keeps the state."""
        envs = self.num_envs
        self.friction, self.base_mass = (
            np.broadcast_to(np.asarray(value, dtype=float), (envs,))
            for value in (dynamics.friction, dynamics.base_mass)
        )
        scale = np.asarray(dynamics.mass_scale, dtype=float)
        scale = np.broadcast_to(
            scale if scale.ndim == 2 else scale.reshape(-1, 1), (envs, self._links)
        )
        shift = np.broadcast_to(np.asarray(dynamics.shift, dtype=float), (envs, 3))
        made: dict[bytes, Any] = {}
        self._models = []
        for env in range(envs):
            values = (self.friction[env], self.base_mass[env], scale[env], shift[env])
            key = b"".join(np.asarray(value).tobytes() for value in values)
            if key not in made:
                made[key] = self._vary(*values[:3], dynamics.shifted, shift[env])
            self._models.append(made[key])
        self._step_batch = self._batch(self._moving, self.substeps)

    def _vary(
        self, friction: float, added_mass: float, scale: np.ndarray, shifted: str, shift: np.ndarray
    ) -> Any:
        if friction <= 0 or scale.min() <= 0:
            raise InputError(
                "Dynamics: friction and mass_scale must be positive, got "
                f"{friction:g} and {scale.min():g}."
            )
        model = copy.copy(self.model)
        model.geom_friction[self._soles, 0] = friction
        base = self._base
        factor = 1 + added_mass / self.model.body_mass[base]
        if factor <= 0:
            raise InputError(
                f"Dynamics: base_mass {added_mass} kg would leave the base "
                f"({self.model.body_mass[base]:.2f} kg) without mass."
            )
        model.body_mass[base] *= factor
        model.body_inertia[base] *= factor
        model.body_mass[1:] *= scale
        model.body_inertia[1:] *= scale[:, None]
        if shifted:
            model.body_ipos[model.body(shifted).id] += shift
        import_mujoco().mj_setConst(model, self._caller[1][0])
        return model

    def step(self, targets: np.ndarray) -> None:
        """Hold the joint targets (N, joints) for ``substeps`` physics steps."""
        start = time.perf_counter()
        self._targets[:] = targets
        self._simulate(self._step_batch, self._team)
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

    def rest(self, envs: np.ndarray) -> None:
        """Stop stepping some environments from now on; they no longer cost anything."""
        self._moving = np.setdiff1d(self._moving, envs)
        self._step_batch = self._batch(self._moving, self.substeps)

    def take_seconds(self) -> float:
        """Return the time spent stepping since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def set_state(self, envs: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Place some environments in given states and read their sensors there."""
        self.qpos[envs] = qpos
        self.qvel[envs] = qvel
        self._targets[envs] = qpos[:, 7:]
        # Sensors are evaluated before the integration, so one discarded step reads them here.
        self._simulate(self._batch(envs, 1), self._caller)

    def push(self, envs: np.ndarray, planar: np.ndarray, angular: np.ndarray) -> None:
        """Overwrite the base's planar velocity (N, 2; world) and angular velocity (N, 3; body)."""
        self.qvel[envs, :2] = planar
        self.qvel[envs, 3:6] = angular

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return all that later steps depend on; the caller stores the dynamics."""
        return {
            "state": self._state.copy(),
            "targets": self._targets.copy(),
            "readings": self._readings.copy(),
        }

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Resume from a saved state."""
        self._state[:] = state["state"]
        self._targets[:] = state["targets"]
        self._readings[:] = state["readings"]

    def sensor(self, name: str) -> np.ndarray:
        """Return the last reading of a sensor, (N, dim), taken one physics step ago."""
        return self._readings[:, self._sensors[name]]

    def sensors(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the last readings of sensors of one dimension, (N, names, dim)."""
        if not names:
            return np.zeros((self.num_envs, 0, 3))
        if names not in self._columns:
            columns = [np.arange(self._readings.shape[1])[self._sensors[name]] for name in names]
            self._columns[names] = np.concatenate(columns)
        return self._readings.take(self._columns[names], axis=1).reshape(
            self.num_envs, len(names), -1
        )

    def torque(self) -> np.ndarray:
        """Return the clipped torque of the PD law in the current state, (N, joints)."""
        joints = len(self.robot.joints)
        q, dq = self.qpos[:, 7:], self.qvel[:, 6 : 6 + joints]
        raw = self._stiffness * (self._targets - q) - self._damping * dq
        return np.clip(raw, -self.torque_limit, self.torque_limit)


def _sensor_columns(model: Any) -> dict[str, slice]:
    columns = {}
    for i in range(model.nsensor):
        sensor = model.sensor(i)
        start, width = int(sensor.adr[0]), int(sensor.dim[0])
        columns[sensor.name] = slice(start, start + width)
    return columns
