"""The policy network of a run and its normalisation, as LeRobot defines them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prism_motor._checks import InputError, PrismError
from prism_motor._extras import missing_extra
from prism_motor.manipulation.demonstrations.dataset import ACTION, OBJECTS, STATE, image_key

if TYPE_CHECKING:
    from prism_motor.manipulation.config import ManipulationConfig
    from prism_motor.manipulation.demonstrations.cache import Demonstrations

SMALLEST_RANGE = 0.01
"""Narrower ranges (m, rad) are widened to this: scaled to the whole range, values that hardly move
in demonstrations would turn a disturbance of a millimetre into the strongest signal."""

_IMAGE_MEAN, _IMAGE_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's statistics, which LeRobot uses for every dataset by default."""

Statistics = dict[str, dict[str, Tensor]]
"""Statistics by column: min and max, or mean and std."""


def make_policy_config(config: ManipulationConfig) -> Any:
    """Return LeRobot's config of the policy."""
    try:
        from lerobot.configs.types import FeatureType, NormalizationMode, PolicyFeature
    except ImportError as error:
        raise missing_extra("Learning from demonstrations", "manipulation", error) from error
    from prism_motor.integrations.lerobot import PrismDiffusionConfig

    task, network, optimiser = config.task, config.network, config.optimiser
    inputs = {STATE: PolicyFeature(FeatureType.STATE, (task.state,))}
    if network.inputs == "objects":
        inputs[OBJECTS] = PolicyFeature(FeatureType.ENV, (task.objects,))
    side = network.image_size
    for camera in task.cameras:
        inputs[image_key(camera)] = PolicyFeature(FeatureType.VISUAL, (3, side, side))
    conditioner = config.conditioner
    settings: dict[str, Any] = dict(  # noqa: C408 - reads like the call below
        conditioner=conditioner.kind,
        prism_degree=conditioner.degree,
        prism_latent=conditioner.latent,
        prism_interaction=conditioner.interaction,
        mlp_size=conditioner.mlp_size,
        image_encoder="small" if network.encoder == "small" else "resnet",
        # LeRobot's environments render at their own size, whatever the policy was trained on.
        resize_shape=(side, side) if task.cameras else None,
        input_features=inputs,
        output_features={ACTION: PolicyFeature(FeatureType.ACTION, (task.action,))},
        normalization_mapping={
            "VISUAL": NormalizationMode.MEAN_STD,
            "STATE": NormalizationMode.MIN_MAX,
            "ENV": NormalizationMode.MIN_MAX,
            "ACTION": NormalizationMode.MIN_MAX,
        },
        n_obs_steps=network.observation_steps,
        horizon=network.horizon,
        n_action_steps=network.action_steps,
        drop_n_last_frames=network.horizon - network.action_steps - network.observation_steps + 1,
        down_dims=network.widths,
        num_train_timesteps=network.noise_steps,
        num_inference_steps=network.inference_steps,
        optimizer_lr=optimiser.learning_rate,
        optimizer_weight_decay=optimiser.weight_decay,
        optimizer_betas=optimiser.betas,
        scheduler_warmup_steps=optimiser.warmup,
        device=config.device,
        push_to_hub=False,
    )
    try:
        return PrismDiffusionConfig(**settings)
    except PrismError:
        raise
    except ValueError as error:  # LeRobot's checks, e.g. of the horizon
        raise InputError(f"network: {error}") from error


def make_policy(config: ManipulationConfig) -> Any:
    """Build the policy with random initial weights."""
    from prism_motor.integrations.lerobot import PrismDiffusionPolicy

    return PrismDiffusionPolicy(make_policy_config(config)).to(torch.device(config.device))


def make_processors(policy: Any, statistics: Statistics) -> tuple[Any, Any]:
    """Return LeRobot's pipelines: observations to network inputs, and outputs to actions."""
    from lerobot.policies.diffusion.processor_diffusion import make_diffusion_pre_post_processors

    return make_diffusion_pre_post_processors(policy.config, dataset_stats=statistics)


def measure_statistics(demonstrations: Demonstrations) -> Statistics:
    """Return the statistics for LeRobot's normalisation."""
    found: Statistics = {}
    for key, values in demonstrations.vectors.items():
        low, high = values.amin(0), values.amax(0)
        wider = (SMALLEST_RANGE - (high - low)).clamp(min=0) / 2
        found[key] = {"min": low - wider, "max": high + wider}
    for key in demonstrations.images:
        pair = {"mean": _IMAGE_MEAN, "std": _IMAGE_STD}
        found[key] = {name: torch.tensor(rgb).reshape(3, 1, 1) for name, rgb in pair.items()}
    return found
