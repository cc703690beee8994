"""From our configs to rsl_rl's: networks and PPO."""

from __future__ import annotations

import contextlib
import io
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch

from prism_motor._extras import missing_extra
from prism_motor.locomotion.mirror import augment
from prism_motor.locomotion.observations import observation_size, resolve_bypass
from prism_motor.train.finite import check

if TYPE_CHECKING:
    from prism_motor.locomotion.config import LocomotionConfig
    from prism_motor.locomotion.legged import LeggedEnv

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
    config: LocomotionConfig,
    env: LeggedEnv,
    parallel: dict[str, int] | None = None,
    device: str = "cpu",
) -> PPO:
    """Build rsl_rl's PPO for a task.

    Args:
        config: The run.
        env: The environments.
        parallel: ``global_rank``, ``local_rank`` and ``world_size`` in data-parallel training.
        device: Where networks and samples are.
    """
    settings: dict[str, Any] = {
        "num_steps_per_env": config.ppo.steps,
        "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
        "actor": _actor_settings(config),
        "critic": {
            "class_name": "MLPModel",
            "hidden_dims": list(config.critic_hidden),
            "activation": "elu",
            "obs_normalization": config.ppo.normalise_observations,
        },
        "algorithm": _algorithm_settings(config),
        "multi_gpu": parallel,
    }
    with contextlib.redirect_stdout(io.StringIO()):  # it prints the networks
        ppo = PPO.construct_algorithm(env.get_observations(), env, settings, device)  # type: ignore[arg-type]
    if config.ppo.mirror:
        mirrored: Any = env  # rsl_rl's type hint is its own class; it only needs the attributes
        ppo.symmetry = _Augmentation(mirrored, augment, use_data_augmentation=True)
    if config.ppo.clip_together:
        ppo.max_grad_norm = float("inf")  # rsl_rl would clip actor and critic one by one
        ppo.optimizer.register_step_pre_hook(_clip_together(config.ppo.gradient_norm))
    ppo.critic.register_forward_hook(_check_values)
    return ppo


def _clip_together(norm: float) -> Any:
    def clip(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        torch.nn.utils.clip_grad_norm_(parameters, norm)

    return clip


def _check_values(_critic: Any, _observations: Any, values: torch.Tensor) -> torch.Tensor:
    _check("the critic's value", values)
    return values.float()


def _check(what: str, values: torch.Tensor) -> None:
    """Check what a network returned, but not in rollouts on another device, where looking waits.

    The trainer checks their actions and returns instead.
    """
    if values.device.type == "cpu" or torch.is_grad_enabled():
        check(what, values)


class CheckedGaussian(GaussianDistribution):
    """The actions' distribution, in fp32 whatever the network computes with.

    Torch refuses to sample from NaN without saying what it is.

    Args:
        *arguments: As in rsl_rl.
        kl_offset: Added to the ratio of standard deviations in the KL divergence, as in rsl_rl 1.
        **options: As in rsl_rl.
    """

    def __init__(self, *arguments: Any, kl_offset: float = 0.0, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.kl_offset = kl_offset

    def update(self, mlp_output: torch.Tensor) -> None:
        """Take over what the network returned, if it is finite."""
        super().update(mlp_output.float())
        _check("the action's mean", self.mean)
        _check("the action's standard deviation", self.std)

    def kl_divergence(
        self, old_params: tuple[torch.Tensor, ...], new_params: tuple[torch.Tensor, ...]
    ) -> torch.Tensor:
        """Return the divergence of the new distribution from the old one, per sample."""
        exact = super().kl_divergence(old_params, new_params)
        if not self.kl_offset:
            return exact
        ratio = new_params[1] / old_params[1]
        return exact + torch.log1p(self.kl_offset / ratio).sum(-1)


class _Augmentation(Symmetry):
    """Mirrored copies of the samples, without the loss that rsl_rl would compute just to log it."""

    def compute_loss(self, actor: MLPModel, batch: Any, original_batch_size: int) -> torch.Tensor:
        """Return zero; the original runs the actor once more."""
        return torch.zeros(())


def make_actor(config: LocomotionConfig) -> MLPModel:
    """Build only the policy network, as it is trained, with random weights."""
    inputs, outputs = observation_size(config.task)
    observations = TensorDict({"policy": torch.zeros(1, inputs)}, batch_size=[1])
    settings = _actor_settings(config)
    kind: Any = resolve_callable(settings.pop("class_name"))
    return kind(observations, {"actor": ["policy"]}, "actor", outputs, **settings)


def _actor_settings(config: LocomotionConfig) -> dict[str, Any]:
    actor, ppo = resolve_bypass(config.actor, config.task), config.ppo
    settings: dict[str, Any] = {
        "class_name": "MLPModel",
        "hidden_dims": list(actor.hidden),
        "activation": actor.activation,
        "obs_normalization": ppo.normalise_observations,
        "distribution_cfg": {
            "class_name": "prism_motor.locomotion.ppo:CheckedGaussian",
            "init_std": ppo.initial_std,
            "kl_offset": ppo.kl_offset,
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


def _algorithm_settings(config: LocomotionConfig) -> dict[str, Any]:
    ppo = config.ppo
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
        "use_mixed_precision": config.precision == "bf16",
    }
