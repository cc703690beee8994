"""The GPU engine for tasks that compute on the CPU: its states as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from prism_motor.sim.dynamics import Dynamics
    from prism_motor.sim.warp_engine import WarpEngine


class HostEngine:
    """Steps robots on a device and shows them on the CPU, as the CPU engine does.

    A control step takes one transfer each way. What it shows are copies: states are changed by
    :meth:`set_state` and :meth:`push` alone.

    Args:
        engine: The engine on the device.
    """

    def __init__(self, engine: WarpEngine) -> None:
        self._engine = engine
        self.robot, self.num_envs = engine.robot, engine.num_envs
        self.substeps, self.timestep, self.model = engine.substeps, engine.timestep, engine.model
        self._widths = [self.model.nq, self.model.nv, self.model.nsensordata]
        self._fetch()

    def _fetch(self) -> None:
        """Copy states and readings from the device, in one transfer."""
        engine = self._engine
        everything = torch.cat([engine.qpos, engine.qvel, engine.readings], dim=1).cpu().double()
        self.qpos, self.qvel, self._readings = (
            part.numpy() for part in everything.split(self._widths, dim=1)
        )
        self._is_stale = False  # readings of robots that were placed since

    @property
    def friction(self) -> np.ndarray:
        """Sliding friction of every robot's feet, (N,)."""
        return self._engine.friction

    @property
    def base_mass(self) -> np.ndarray:
        """Mass added to every base, kg, (N,)."""
        return self._engine.base_mass

    def set_dynamics(self, dynamics: Dynamics) -> None:
        """Give every environment its friction and masses; keeps the state."""
        self._engine.set_dynamics(dynamics)

    def step(self, targets: np.ndarray | Tensor) -> None:
        """Hold the joint targets (N, joints) for ``substeps`` physics steps."""
        self._engine.step(targets)
        self._fetch()

    def rest(self, envs: np.ndarray | Tensor) -> None:
        """Keep some environments as they are from now on."""
        self._engine.rest(envs)

    def take_seconds(self) -> float:
        """Return the time spent stepping since the last call."""
        return self._engine.take_seconds()

    def check(self) -> None:
        """Raise if robots had more contacts than there is room for since the last call."""
        self._engine.check()

    def set_state(
        self, envs: np.ndarray | Tensor, qpos: np.ndarray | Tensor, qvel: np.ndarray | Tensor
    ) -> None:
        """Place some environments in given states and read their sensors there."""
        self._engine.set_state(envs, qpos, qvel)
        rows = np.asarray(envs)
        self.qpos[rows] = np.asarray(qpos, dtype=np.float32)
        self.qvel[rows] = np.asarray(qvel, dtype=np.float32)
        self._is_stale = True

    def push(
        self, envs: np.ndarray | Tensor, planar: np.ndarray | Tensor, angular: np.ndarray | Tensor
    ) -> None:
        """Overwrite the base's planar velocity (N, 2; world) and angular velocity (N, 3; body)."""
        self._engine.push(envs, planar, angular)
        rows = np.asarray(envs)
        self.qvel[rows, :2] = np.asarray(planar, dtype=np.float32)
        self.qvel[rows, 3:6] = np.asarray(angular, dtype=np.float32)

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that later steps depend on; the caller stores the dynamics."""
        return self._engine.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a saved state."""
        self._engine.load_state_dict(state)
        self._fetch()

    def sensors(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the last readings of sensors of one dimension, (N, names, dim)."""
        if self._is_stale:
            self._fetch()
        columns = self._engine.columns(names)
        return self._readings[:, columns].reshape(self.num_envs, len(names), -1)
