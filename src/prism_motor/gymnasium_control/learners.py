"""Stable-Baselines3's algorithms by the settings of a run; a replay buffer with numbered rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor._extras import missing_extra
from prism_motor.gymnasium_control.config import ControlConfig, PPOSettings, SACSettings
from prism_motor.gymnasium_control.environments import EXTRA, make_env
from prism_motor.gymnasium_control.watched_env import WatchedEnv
from prism_motor.nn.conditioner import make_activation

try:
    from stable_baselines3 import PPO, SAC
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    from prism_motor.integrations.stable_baselines3 import PrismActorCriticPolicy, PrismSACPolicy
except ImportError as error:
    raise missing_extra("prism_motor.gymnasium_control", EXTRA, error) from error

_FIELDS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
"""Arrays of a replay buffer."""


class NumberedReplayBuffer(ReplayBuffer):
    """Stable-Baselines3's replay buffer, whose rows have numbers and can be read and put back."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._added = 0
        super().__init__(*args, **options)

    def add(self, *values: Any, **named: Any) -> None:
        """Append a row."""
        super().add(*values, **named)
        self._added += 1

    @property
    def added(self) -> int:
        """Rows that were ever added."""
        return self._added

    @added.setter
    def added(self, added: int) -> None:
        self._added = added
        self.pos, self.full = added % self.capacity, added >= self.capacity

    @property
    def capacity(self) -> int:
        """Rows that it holds."""
        return self.buffer_size

    @property
    def envs(self) -> int:
        """Environments per row."""
        return self.n_envs

    @property
    def oldest(self) -> int:
        """Number of the oldest row."""
        return max(0, self._added - self.capacity)

    @property
    def bytes(self) -> int:
        """The memory that it needs once it is full."""
        return sum(getattr(self, name).nbytes for name in _FIELDS)

    def rows(self, first: int, last: int) -> dict[str, Tensor]:
        """Return copies of the fields of the rows ``first`` to ``last``, exclusive."""
        places = np.arange(first, last) % self.capacity
        return {name: torch.from_numpy(getattr(self, name)[places]) for name in _FIELDS}

    def put(self, first: int, values: Mapping[str, Tensor]) -> None:
        """Write rows back to where :meth:`rows` took them from."""
        places = np.arange(first, first + len(values["rewards"])) % self.capacity
        for name, saved in values.items():
            getattr(self, name)[places] = saved.numpy()


def make_envs(config: ControlConfig) -> list[WatchedEnv]:
    """Make the environments of a run."""
    single = config.algorithm == "sac"
    return [WatchedEnv(make_env(config.task.env), i, single) for i in range(config.envs)]


def make_model(config: ControlConfig, envs: list[WatchedEnv]) -> Any:
    """Make Stable-Baselines3's algorithm of a run.

    Args:
        config: The run.
        envs: Its environments.
    """
    monitored = [Monitor(env) for env in envs]
    vector = DummyVecEnv([lambda env=env: env for env in monitored])  # type: ignore[misc]
    learner = config.learner
    common: dict[str, Any] = {
        "learning_rate": learner.rate,
        "gamma": learner.gamma,
        "batch_size": learner.batch,
        "seed": config.seed,
        "device": config.device,
    }
    network: dict[str, Any] = {"activation_fn": type(make_activation(config.actor.activation))}
    plain = config.actor.name == "mlp"
    if not plain:
        own = {k: v for k, v in asdict(config.actor).items() if k not in ("hidden", "activation")}
        network |= {"actor": config.actor.name, **own}
    hidden, critic = list(config.actor.hidden), list(config.critic_hidden)
    if isinstance(learner, PPOSettings):
        network |= {
            "net_arch": {"pi": hidden, "vf": critic},
            "log_std_init": learner.log_std,
            "ortho_init": learner.orthogonal,
        }
        return PPO(
            "MlpPolicy" if plain else PrismActorCriticPolicy,
            VecNormalize(vector, gamma=learner.gamma) if learner.normalise else vector,
            n_steps=learner.steps,
            n_epochs=learner.epochs,
            gae_lambda=learner.gae_lambda,
            clip_range=learner.clip,
            ent_coef=learner.entropy_weight,
            vf_coef=learner.value_weight,
            max_grad_norm=learner.gradient_norm,
            policy_kwargs=network,
            **common,
        )
    assert isinstance(learner, SACSettings)
    return SAC(
        "MlpPolicy" if plain else PrismSACPolicy,
        vector,
        buffer_size=learner.buffer,
        learning_starts=learner.learning_starts,
        tau=learner.tau,
        replay_buffer_class=NumberedReplayBuffer,
        policy_kwargs={**network, "net_arch": {"pi": hidden, "qf": critic}},
        **common,
    )


def acting_parts(model: Any) -> list[nn.Module]:
    """Return the modules that map observations to the mean of actions, in order."""
    policy = model.policy
    if isinstance(model, SAC):
        return [policy.actor.latent_pi, policy.actor.mu]
    return [policy.mlp_extractor.policy_net, policy.action_net]


def optimizers(model: Any) -> dict[str, torch.optim.Optimizer]:
    """Return an algorithm's optimisers by name."""
    if not isinstance(model, SAC):
        return {"policy": model.policy.optimizer}
    found = {"actor": model.actor.optimizer, "critic": model.critic.optimizer}
    entropy = model.ent_coef_optimizer
    return found if entropy is None else {**found, "entropy": entropy}
