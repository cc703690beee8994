"""What the configs of our LeRobot policies have in common, from the settings of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prism_motor._checks import InputError, PrismError
from prism_motor._extras import missing_extra
from prism_motor.manipulation.demonstrations.dataset import ACTION, OBJECTS, STATE, image_key

if TYPE_CHECKING:
    from prism_motor.manipulation.config import ManipulationConfig


def make_lerobot_config(
    kind: str, config: ManipulationConfig, device: str, own: dict[str, Any]
) -> Any:
    """Return LeRobot's config of a run's policy.

    Args:
        kind: Name of the config class in :mod:`prism_motor.integrations.lerobot`.
        config: The run.
        device: Where the policy is.
        own: The fields that this kind of policy alone has.
    """
    try:
        from prism_motor.integrations import lerobot
    except ImportError as error:
        raise missing_extra("Learning from demonstrations", "manipulation", error) from error
    conditioner, optimiser = config.conditioner, config.optimiser
    inputs, outputs = _features(config)
    try:
        return getattr(lerobot, kind)(
            conditioner=conditioner.kind,
            prism_degree=conditioner.degree,
            prism_latent=conditioner.latent,
            prism_interaction=conditioner.interaction,
            prism_gate_init=conditioner.gate_init,
            mlp_size=conditioner.mlp_size,
            input_features=inputs,
            output_features=outputs,
            n_action_steps=config.network.action_steps,
            optimizer_lr=optimiser.learning_rate,
            optimizer_weight_decay=optimiser.weight_decay,
            optimizer_betas=optimiser.betas,
            scheduler_warmup_steps=optimiser.warmup,
            device=device,
            push_to_hub=False,
            **own,
        )
    except PrismError:
        raise
    except ValueError as error:  # LeRobot's checks, e.g. of the horizon
        raise InputError(f"network: {error}") from error


def _features(config: ManipulationConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the policy sees and what it does, with their shapes."""
    from lerobot.configs.types import FeatureType, PolicyFeature

    task, side = config.task, config.network.image_size
    inputs = {STATE: PolicyFeature(FeatureType.STATE, (task.state,))}
    if config.network.inputs == "objects":
        inputs[OBJECTS] = PolicyFeature(FeatureType.ENV, (task.objects,))
    for camera in task.cameras:
        inputs[image_key(camera)] = PolicyFeature(FeatureType.VISUAL, (3, side, side))
    return inputs, {ACTION: PolicyFeature(FeatureType.ACTION, (task.action,))}
