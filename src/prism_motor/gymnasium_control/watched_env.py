"""An environment that raises where something is not finite, and whose whole state can be saved."""

from __future__ import annotations

import math
import time
from typing import Any

import gymnasium
import mujoco
import numpy as np
import torch
from gymnasium.wrappers import TimeLimit
from torch import Tensor

from prism_motor.gymnasium_control.environments import layers
from prism_motor.runs.layout import RunError
from prism_motor.train.finite import NonFiniteTrainingError, check_observations, check_rewards

_MUJOCO: Any = mujoco
"""It has no type information."""
_WHOLE = int(_MUJOCO.mjtState.mjSTATE_INTEGRATION)
"""All that a step of physics depends on."""
_DIVERGED = ("mjWARN_BADQPOS", "mjWARN_BADQVEL", "mjWARN_BADQACC")
"""Warnings after which MuJoCo starts anew from its initial state, without asking."""

_DERIVED = (
    "xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis", "geom_xpos", "geom_xmat",
    "site_xpos", "site_xmat", "subtree_com", "subtree_linvel", "subtree_angmom", "cdof", "cdof_dot",
    "cinert", "crb", "cvel", "cacc", "cfrc_int", "cfrc_ext", "ten_length", "ten_velocity",
    "actuator_length", "actuator_velocity", "actuator_force", "act_dot", "qfrc_bias",
    "qfrc_passive", "qfrc_actuator", "qfrc_smooth", "qfrc_constraint", "qfrc_inverse", "qacc",
    "qacc_smooth", "sensordata", "energy",
)  # fmt: skip
"""What environments read of the physics besides its state. It is of the last substep, so it cannot
be computed from the state: Ant and Humanoid reward the way from there."""


class WatchedEnv(gymnasium.Wrapper):  # type: ignore[type-arg]
    """Steps one of Gymnasium's MuJoCo environments.

    Args:
        env: The environment.
        number: Its number, for messages.
        single: Whether observations are converted to single precision, which is what networks see:
            a replay buffer of doubles would be twice as large.

    Attributes:
        seconds: Time spent in steps.
    """

    def __init__(self, env: Any, number: int, single: bool) -> None:
        super().__init__(env)
        self.number, self.seconds = number, 0.0
        self._single = single
        if single:
            low, high = (
                bound.astype(np.float32)
                for bound in (env.observation_space.low, env.observation_space.high)
            )
            self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self._model, self._data = env.unwrapped.model, env.unwrapped.data
        self._warnings = [int(getattr(_MUJOCO.mjtWarning, name)) for name in _DIVERGED]
        self._limits = [layer for layer in layers(env) if isinstance(layer, TimeLimit)]

    def reset(self, **options: Any) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(**options)
        return self._checked(observation), info

    def step(self, action: np.ndarray) -> Any:
        """Do one step."""
        start = time.perf_counter()
        if not np.isfinite(action).all():
            raise NonFiniteTrainingError(f"the action of environment {self.number} is {action}")
        observation, reward, terminated, truncated, info = self.env.step(action)
        for index in self._warnings:
            if self._data.warning[index].number:
                name = _MUJOCO.mjtWarning(index).name.removeprefix("mjWARN_BAD").lower()
                raise NonFiniteTrainingError(
                    f"the physics of environment {self.number} diverged ({name} is not finite or "
                    "huge)"
                )
        if not math.isfinite(reward):
            check_rewards(self._at_number(torch.tensor([float(reward)])))
        found = self._checked(observation)
        self.seconds += time.perf_counter() - start
        return found, reward, terminated, truncated, info

    def _checked(self, observation: np.ndarray) -> np.ndarray:
        if not np.isfinite(observation).all():
            rows = self._at_number(torch.from_numpy(observation)[None])
            check_observations([("policy", rows)])
        return observation.astype(np.float32) if self._single else observation

    def _at_number(self, row: Tensor) -> Tensor:
        """Return rows of all environments up to this one, whose number a message names."""
        return torch.cat([torch.zeros(self.number, *row.shape[1:], dtype=row.dtype), row])

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return (tensors, plain data) from which :meth:`restore` continues exactly."""
        state = np.empty(_MUJOCO.mj_stateSize(self._model, _WHOLE))
        _MUJOCO.mj_getState(self._model, self._data, state, _WHOLE)
        derived = np.concatenate([getattr(self._data, name).ravel() for name in _DERIVED])
        tensors = {"state": torch.from_numpy(state), "derived": torch.from_numpy(derived)}
        return tensors, {
            "steps": [limit._elapsed_steps for limit in self._limits],
            "random": self.env.unwrapped.np_random.bit_generator.state,
        }

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Continue from a saved state; the environment has been reset before."""
        state, derived = tensors["state"].numpy(), tensors["derived"].numpy()
        fields = [getattr(self._data, name) for name in _DERIVED]
        sizes = [one.size for one in fields]
        if len(state) != _MUJOCO.mj_stateSize(self._model, _WHOLE) or len(derived) != sum(sizes):
            raise RunError(
                "The state of the physics does not fit: the checkpoint was written with another "
                f"version of MuJoCo or of Gymnasium. These are {_MUJOCO.__version__} and "
                f"{gymnasium.__version__}; provenance.json names those of the run."
            )
        _MUJOCO.mj_setState(self._model, self._data, state, _WHOLE)
        for one, values in zip(fields, np.split(derived, np.cumsum(sizes)[:-1]), strict=True):
            one[...] = values.reshape(one.shape)
        for limit, steps in zip(self._limits, plain["steps"], strict=True):
            limit._elapsed_steps = steps
        self.env.unwrapped.np_random.bit_generator.state = plain["random"]
