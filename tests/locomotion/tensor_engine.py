"""The CPU engine with its states as tensors on any device, as the GPU engine has them."""

import numpy as np
import torch

from prism_motor.sim import RolloutEngine
from prism_motor.sim.engines import EngineChoice
from tests.devices import AWAY, AwayTensor


class TensorEngine:
    """Steps with MuJoCo; what goes in and out are float32 tensors on a device.

    Moving them is no transfer of the task, so it is not counted.
    """

    def __init__(self, robot, num_envs, device, **physics):
        self._engine = RolloutEngine(robot, num_envs, **physics)
        self._away = torch.device(device) == AWAY
        self.robot, self.num_envs, self.model = robot, num_envs, self._engine.model
        self.checks = 0

    def _out(self, values):
        found = torch.from_numpy(values.astype(np.float32))
        return AwayTensor(found) if self._away else found

    def _in(self, values):
        if self._away:
            assert isinstance(values, AwayTensor)
            values = values.inner
        return values.numpy()

    @property
    def qpos(self):
        return self._out(self._engine.qpos)

    @property
    def qvel(self):
        return self._out(self._engine.qvel)

    @property
    def friction(self):
        return self._engine.friction

    @property
    def base_mass(self):
        return self._engine.base_mass

    def sensors(self, names):
        return self._out(self._engine.sensors(names))

    def torque(self):
        return self._out(self._engine.torque())

    def step(self, targets):
        self._engine.step(self._in(targets))

    def set_state(self, envs, qpos, qvel):
        self._engine.set_state(*map(self._in, (envs, qpos, qvel)))

    def push(self, envs, planar, angular):
        self._engine.push(*map(self._in, (envs, planar, angular)))

    def set_dynamics(self, dynamics):
        self._engine.set_dynamics(dynamics)

    def state_dict(self):
        return {k: AwayTensor(torch.from_numpy(v)) if self._away else torch.from_numpy(v)
                for k, v in self._engine.state_dict().items()}  # fmt: skip

    def load_state_dict(self, state):
        self._engine.load_state_dict({k: self._in(v) for k, v in state.items()})

    def take_seconds(self):
        return self._engine.take_seconds()

    def check(self):
        self.checks += 1


class TensorChoice(EngineChoice):
    """An engine choice that makes one of these."""

    def make(self, robot, num_envs, **physics):
        return TensorEngine(robot, num_envs, self.device, **physics)
