"""Stepping many robots at once with MuJoCo Warp, on a GPU or on its CPU back end.

:class:`WarpEngine` has the attributes and methods of
:class:`~prism_motor.sim.engine.RolloutEngine`, with float32 tensors on its device. A control step
is one recorded graph, so Python's part of it does not grow with what happens in it. Nothing here
waits for the device except :meth:`WarpEngine.check` and :meth:`WarpEngine.take_seconds`, which are
called once per update.
"""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import PrismError
from prism_motor._console import count
from prism_motor._extras import missing_extra
from prism_motor.sim.batch import RobotBatch
from prism_motor.sim.contacts import Room, find_room
from prism_motor.sim.scene import SOLVER, import_mujoco

if TYPE_CHECKING:
    from prism_motor.sim.dynamics import Dynamics
    from prism_motor.sim.robots.robot import Robot

_VARIED = (
    "geom_friction", "body_mass", "body_inertia", "body_ipos", "body_subtreemass",
    "body_invweight0", "dof_invweight0",
)  # fmt: skip
"""Fields of a model that friction and masses change; each robot has its own."""


class ContactOverflowError(PrismError, RuntimeError):
    """Robots had more contacts than there is room for, so their motion is wrong."""


def import_warp() -> tuple[Any, Any]:
    """Import Warp and MuJoCo Warp, or name the extra that provides them."""
    try:
        warp: Any = importlib.import_module("warp")
        mujoco_warp: Any = importlib.import_module("mujoco_warp")
    except ImportError as error:
        raise missing_extra("The gpu engine (Python 3.11 or newer)", "gpu", error) from error
    warp.config.log_level = warp.LOG_WARNING  # not one line per kernel
    warp.init()
    return warp, mujoco_warp


class WarpEngine(RobotBatch):
    """A batch of copies of one robot, stepped by MuJoCo Warp.

    Args:
        robot: The robot.
        num_envs: Number of environments.
        timestep: Physics step, s.
        substeps: Physics steps per call of :meth:`step`.
        solver: Version of the contact solver.
        device: Torch device, ``cpu``, ``cuda`` or ``cuda:1``.
        contacts: Room for contacts per robot; 0: as many as its geometry can need.

    Attributes:
        qpos: Positions, (N, 7 + joints): base position, base quaternion wxyz, joint angles.
        qvel: Velocities, (N, 6 + joints): base linear (world), base angular (body), joints.
        readings: Last readings of all sensors, (N, sensors), taken one physics step ago.
        room: How many contacts and constraints a robot may have.
    """

    def __init__(
        self,
        robot: Robot,
        num_envs: int,
        *,
        timestep: float,
        substeps: int,
        solver: int = SOLVER,
        device: str | torch.device = "cpu",
        contacts: int = 0,
    ) -> None:
        self._warp, self._mujoco_warp = import_warp()
        super().__init__(robot, num_envs, timestep=timestep, substeps=substeps, solver=solver)
        self.device = torch.device(device)
        self._place = self._warp.device_from_torch(self.device)
        # Warp never resets a diverged simulation, and does not know the flag that forbids it.
        autoreset = int(import_mujoco().mjtDisableBit.mjDSBL_AUTORESET)
        self.model.opt.disableflags &= ~autoreset
        self.room: Room = find_room(self.model, contacts)
        self._columns: dict[tuple[str, ...], Tensor] = {}
        with self._warp.ScopedDevice(self._place):
            sizes = dict.fromkeys(_VARIED, num_envs)
            self._physics = self._mujoco_warp.put_model(self.model, batch_sizes=sizes)
            self._physics.opt.warn_overflow = 0  # it would print; check() raises
            self._data = self._mujoco_warp.make_data(
                self.model, nworld=num_envs, nconmax=self.room.contacts, njmax=self.room.rows
            )
        # Tensors that share the memory of the simulation. A graph holds addresses: these are
        # written to, never replaced.
        share = self._warp.to_torch
        self.qpos: Tensor = share(self._data.qpos)
        self.qvel: Tensor = share(self._data.qvel)
        self._targets: Tensor = share(self._data.ctrl)
        self._sensed: Tensor = share(self._data.sensordata)
        self._overflow: Tensor = share(self._data.overflow)
        self.readings = torch.zeros_like(self._sensed)
        self._resting: Tensor | None = None
        self._clock = _Clock(self.device)
        self._advance = self._record(self._advance_eagerly)
        self._look = self._record(self._look_eagerly)
        self.qpos[:] = torch.from_numpy(self.model.qpos0).to(self.qpos)
        self.qvel.zero_()
        self._overflow.zero_()
        self._stiffness, self._damping, self.torque_limit = (
            torch.tensor(values, dtype=torch.float32, device=self.device)
            for values in (
                [joint.stiffness for joint in robot.joints],
                [joint.damping for joint in robot.joints],
                self.model.actuator_forcerange[:, 1].tolist(),
            )
        )

    # --- graphs ---

    def _advance_eagerly(self) -> None:
        # As mujoco.rollout does: what a control step leads to depends on the state alone.
        self._data.qacc_warmstart.zero_()
        for _ in range(self.substeps):
            self._mujoco_warp.step(self._physics, self._data)

    def _look_eagerly(self) -> None:
        self._data.qacc_warmstart.zero_()
        self._mujoco_warp.forward(self._physics, self._data)

    def _record(self, act: Callable[[], None]) -> Callable[[], None]:
        """Return what repeats some work as one graph; the first call compiles its kernels."""
        warp = self._warp
        with warp.ScopedDevice(self._place):
            act()
            # A graph of another engine that is collected now would become part of this one.
            with _without_collection(), warp.ScopedCapture(device=self._place) as capture:
                act()

        def launch() -> None:
            if self.device.type == "cuda":  # in the order of torch's own work
                stream = warp.stream_from_torch(torch.cuda.current_stream(self.device))
                warp.capture_launch(capture.graph, stream=stream)
            else:
                warp.capture_launch(capture.graph)

        return launch

    # --- what engines do ---

    def set_dynamics(self, dynamics: Dynamics) -> None:
        """Give every environment its friction and masses; keeps the state."""
        rows: dict[str, list[np.ndarray]] = {name: [] for name in _VARIED}
        for model in self.vary(dynamics):
            for name, found in rows.items():
                found.append(np.asarray(getattr(model, name), dtype=np.float32))
        for name, found in rows.items():
            getattr(self._physics, name).assign(np.stack(found))

    def step(self, targets: Tensor | np.ndarray) -> None:
        """Hold the joint targets (N, joints) for ``substeps`` physics steps."""
        with self._clock:
            self._targets.copy_(self._tensor(targets))
            before = None if self._resting is None else self._rows(self._resting)
            self._advance()
            self.readings.copy_(self._sensed)
            if before is not None and self._resting is not None:
                for values, kept in zip(self._state(), before, strict=True):
                    values[self._resting] = kept

    def rest(self, envs: Tensor | np.ndarray) -> None:
        """Keep some environments as they are from now on; they cost as much as before."""
        envs = self._indices(envs)
        before = envs.new_zeros(0) if self._resting is None else self._resting
        self._resting = torch.cat([before, envs]).unique()

    def take_seconds(self) -> float:
        """Return the time spent stepping since the last call."""
        return self._clock.take()

    def check(self) -> None:
        """Raise if robots had more contacts than there is room for since the last call."""
        kinds = self._mujoco_warp.OverflowType
        # The solver's limits are part of the physics, on every engine.
        harmless = int(kinds.ITERATIONS | kinds.LS_ITERATIONS)
        bits = self._overflow & ~harmless
        affected = int((bits != 0).sum())
        if not affected:
            return
        found = kinds(int(np.bitwise_or.reduce(bits.cpu().numpy())))
        self._overflow.zero_()
        raise ContactOverflowError(
            f"{affected} of {self.num_envs} robots had more contacts than the gpu engine has room "
            f"for ({count(self.room.contacts, 'contact')}, {self.room.rows} constraints each; "
            f"MuJoCo Warp: {found.name}), so their motion since the last update is wrong. Start "
            f"again with more room: --contacts {2 * self.room.contacts}."
        )

    def set_state(
        self, envs: Tensor | np.ndarray, qpos: Tensor | np.ndarray, qvel: Tensor | np.ndarray
    ) -> None:
        """Place some environments in given states and read their sensors there."""
        envs, qpos = self._indices(envs), self._tensor(qpos)
        self.qpos[envs] = qpos
        self.qvel[envs] = self._tensor(qvel)
        self._targets[envs] = qpos[:, 7:]
        # All robots are looked at, but the others' readings stay one physics step old.
        self._look()
        self.readings[envs] = self._sensed[envs]

    def push(
        self, envs: Tensor | np.ndarray, planar: Tensor | np.ndarray, angular: Tensor | np.ndarray
    ) -> None:
        """Overwrite the base's planar velocity (N, 2; world) and angular velocity (N, 3; body)."""
        envs = self._indices(envs)
        self.qvel[envs, :2] = self._tensor(planar)
        self.qvel[envs, 3:6] = self._tensor(angular)

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that later steps depend on; the caller stores the dynamics."""
        names = ("qpos", "qvel", "readings", "targets")
        tensors = (*self._state(), self._targets)
        return {name: tensor.clone() for name, tensor in zip(names, tensors, strict=True)}

    def load_state_dict(self, state: Mapping[str, Tensor | np.ndarray]) -> None:
        """Resume from a saved state."""
        self.qpos.copy_(self._tensor(state["qpos"]))
        self.qvel.copy_(self._tensor(state["qvel"]))
        self.readings.copy_(self._tensor(state["readings"]))
        self._targets.copy_(self._tensor(state["targets"]))

    def sensor(self, name: str) -> Tensor:
        """Return the last reading of a sensor, (N, dim), taken one physics step ago."""
        return self.readings[:, self._sensors[name]]

    def sensors(self, names: tuple[str, ...]) -> Tensor:
        """Return the last readings of sensors of one dimension, (N, names, dim)."""
        if not names:
            return self.readings.new_zeros(self.num_envs, 0, 3)
        if names not in self._columns:
            self._columns[names] = torch.from_numpy(self.columns(names)).to(self.device)
        found = self.readings.index_select(1, self._columns[names])
        return found.view(self.num_envs, len(names), -1)

    def torque(self) -> Tensor:
        """Return the clipped torque of the PD law in the current state, (N, joints)."""
        raw = self._stiffness * (self._targets - self.qpos[:, 7:])
        raw = raw - self._damping * self.qvel[:, 6:]
        return torch.minimum(torch.maximum(raw, -self.torque_limit), self.torque_limit)

    def _state(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.qpos, self.qvel, self.readings

    def _rows(self, envs: Tensor) -> list[Tensor]:
        return [values[envs] for values in self._state()]

    def _tensor(self, values: Tensor | np.ndarray) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=self.device)

    def _indices(self, envs: Tensor | np.ndarray) -> Tensor:
        return torch.as_tensor(envs, dtype=torch.long, device=self.device)


class _Clock:
    """Adds up the time that a device spends inside, without waiting for it."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._seconds = 0.0
        self._pairs: list[tuple[Any, Any]] = []

    def __enter__(self) -> None:
        if self._cuda:
            self._start = torch.cuda.Event(enable_timing=True)
            self._start.record()
        else:
            self._begun = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if self._cuda:
            end = torch.cuda.Event(enable_timing=True)
            end.record()
            self._pairs.append((self._start, end))
        else:
            self._seconds += time.perf_counter() - self._begun

    def take(self) -> float:
        """Return the seconds since the last call; waits for the device."""
        if self._pairs:
            self._pairs[-1][1].synchronize()
            self._seconds += sum(start.elapsed_time(end) for start, end in self._pairs) / 1e3
        seconds, self._seconds, self._pairs = self._seconds, 0.0, []
        return seconds


@contextmanager
def _without_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
