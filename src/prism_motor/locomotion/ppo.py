"""From our configs to rsl_rl's: networks and PPO."""

from __future__ import annotations

import contextlib
import io
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch

from prism_motor._extras import missing_extra
from prism_motor.locomotion.mirror import augment
from prism_motor.locomotion.observations import observation_size
from prism_motor.train.finite import check

if TYPE_CHECKING:
    from prism_motor.locomotion.config import LocomotionConfig, PPOConfig
    from prism_motor.locomotion.legged import LeggedEnv
    from prism_motor.nn import ActorConfig

try:
    from rsl_rl.algorithms import PPO
    from rsl_rl.extensions import Symmetry
    from rsl_rl.models import MLPModel
    from rsl_rl.modules.distribution import GaussianDistribution
    from rsl_rl.utils import resolve_callable
    from tensordict import TensorDict
except ImportError as error:
    raise missing_extra("Learning to walk", "locomotion", error) from error


def make_ppo(
    config: LocomotionConfig, env: LeggedEnv, parallel: dict[str, int] | None = None
) -> PPO:
    """Build rsl_rl's PPO for a task.

    Args:
        config: The run.
        env: The environments.
        parallel: ``global_rank``, ``local_rank`` and ``world_size`` in data-parallel training.
    """
    settings: dict[str, Any] = {
        "num_steps_per_env": config.ppo.steps,
        "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
        "actor": _actor_settings(config.actor, config.ppo),
        "critic": {
            "class_name": "MLPModel",
            "hidden_dims": list(config.critic_hidden),
            "activation": "elu",
            "obs_normalization": config.ppo.normalise_observations,
        },
        "algorithm": _algorithm_settings(config.ppo),
        "multi_gpu": parallel,
    }
    with contextlib.redirect_stdout(io.StringIO()):  # it prints the networks
        ppo = PPO.construct_algorithm(env.get_observations(), env, settings, "cpu")  # type: ignore[arg-type]
    if config.ppo.mirror:
        mirrored: Any = env  # rsl_rl's type hint is its own class; it only needs the attributes
        ppo.symmetry = _Augmentation(mirrored, augment, use_data_augmentation=True)
    ppo.critic.register_forward_hook(_check_values)
    return ppo


def _check_values(_critic: Any, _observations: Any, values: Any) -> None:
    check("the critic's value", values)


class CheckedGaussian(GaussianDistribution):
    """The actions' distribution; torch refuses to sample from NaN without saying what it is."""

    def update(self, mlp_output: torch.Tensor) -> None:
        """Take over what the network returned, if it is finite."""
        super().update(mlp_output)
        check("the action's mean", self.mean)
        check("the action's standard deviation", self.std)


class _Augmentation(Symmetry):
    """Mirrored copies of the samples, without the loss that rsl_rl would compute just to log it."""

    def compute_loss(self, actor: MLPModel, batch: Any, original_batch_size: int) -> torch.Tensor:
        """Return zero; the original runs the actor once more."""
        return torch.zeros(())


def make_actor(config: LocomotionConfig) -> MLPModel:
    """Build only the policy network, as it is trained, with random weights."""
    inputs, outputs = observation_size(config.task)
    observations = TensorDict({"policy": torch.zeros(1, inputs)}, batch_size=[1])
    settings = _actor_settings(config.actor, config.ppo)
    kind: Any = resolve_callable(settings.pop("class_name"))
    return kind(observations, {"actor": ["policy"]}, "actor", outputs, **settings)


def _actor_settings(actor: ActorConfig, ppo: PPOConfig) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "class_name": "MLPModel",
        "hidden_dims": list(actor.hidden),
        "activation": actor.activation,
        "obs_normalization": ppo.normalise_observations,
        "distribution_cfg": {
            "class_name": "prism_motor.locomotion.ppo:CheckedGaussian",
            "init_std": ppo.initial_std,
        },
    }
    if actor.name != "mlp":
        shared = ("hidden", "activation")
        settings |= {f.name: getattr(actor, f.name) for f in fields(actor) if f.name not in shared}
        settings |= {
            "class_name": "prism_motor.integrations.rsl_rl:ActorModel",
            "actor": actor.name,
        }
    return settings


def _algorithm_settings(ppo: PPOConfig) -> dict[str, Any]:
    return {
        "class_name": "PPO",
        "num_learning_epochs": ppo.epochs,
        "num_mini_batches": ppo.minibatches,
        "clip_param": ppo.clip,
        "gamma": ppo.gamma,
        "lam": ppo.gae_lambda,
        "value_loss_coef": ppo.value_weight,
        "entropy_coef": ppo.entropy_weight,
        "learning_rate": ppo.learning_rate,
        "max_grad_norm": ppo.gradient_norm,
        "use_clipped_value_loss": ppo.clip_value_loss,
        "schedule": "adaptive" if ppo.schedule == "adaptive" else "fixed",
        "desired_kl": ppo.desired_kl,
    }
