"""The policy network of a run and its normalisation, as LeRobot defines them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from prism_motor._extras import missing_extra
from prism_motor.manipulation.config import NetworkConfig
from prism_motor.manipulation.demonstrations.dataset import OBJECTS
from prism_motor.manipulation.environment import SMALLEST_RANGE
from prism_motor.manipulation.lerobot_config import make_lerobot_config

if TYPE_CHECKING:
    from prism_motor.manipulation.backbones import Statistics
    from prism_motor.manipulation.config import ManipulationConfig
    from prism_motor.manipulation.demonstrations.cache import Demonstrations

_IMAGE_MEAN, _IMAGE_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's statistics, which LeRobot uses for every dataset by default."""


def make_policy_config(config: ManipulationConfig, device: str = "cpu") -> Any:
    """Return LeRobot's config of the policy on a device."""
    network = config.network
    assert isinstance(network, NetworkConfig)
    side = network.image_size
    own = {
        "image_encoder": "small" if network.encoder == "small" else "resnet",
        # LeRobot's environments render at their own size, whatever the policy was trained on.
        "resize_shape": (side, side) if config.task.cameras else None,
        "crop_square": True,  # as demonstrations are read
        "normalization_mapping": _normalization(),
        "n_obs_steps": network.observation_steps,
        "horizon": network.horizon,
        "drop_n_last_frames": network.dropped,
        "down_dims": network.widths,
        "num_train_timesteps": network.noise_steps,
        "num_inference_steps": network.inference_steps,
    }
    return make_lerobot_config("PrismDiffusionConfig", config, device, own)


def _normalization() -> dict[str, Any]:
    """Return how LeRobot scales each kind of input: ranges to one, images as ImageNet's."""
    try:
        from lerobot.configs.types import NormalizationMode
    except ImportError as error:
        raise missing_extra("Learning from demonstrations", "manipulation", error) from error
    ranges = dict.fromkeys(("STATE", "ENV", "ACTION"), NormalizationMode.MIN_MAX)
    return {"VISUAL": NormalizationMode.MEAN_STD, **ranges}


def make_policy(config: ManipulationConfig, device: str = "cpu") -> Any:
    """Build the policy with random initial weights on a device."""
    from prism_motor.integrations.lerobot import PrismDiffusionPolicy

    return PrismDiffusionPolicy(make_policy_config(config, device)).to(torch.device(device))


def make_processors(policy: Any, statistics: Statistics) -> tuple[Any, Any]:
    """Return LeRobot's pipelines: observations to network inputs, and outputs to actions."""
    from lerobot.policies.diffusion.processor_diffusion import make_diffusion_pre_post_processors

    return make_diffusion_pre_post_processors(policy.config, dataset_stats=statistics)


def measure_statistics(demonstrations: Demonstrations) -> Statistics:
    """Return the statistics for LeRobot's normalisation."""
    found: Statistics = {}
    for key, values in demonstrations.vectors.items():
        low, high = values.amin(0), values.amax(0)
        smallest = SMALLEST_RANGE if key == OBJECTS else demonstrations.smallest_range
        wider = (smallest - (high - low)).clamp(min=0) / 2
        found[key] = {"min": low - wider, "max": high + wider}
    for key in demonstrations.images:
        pair = {"mean": _IMAGE_MEAN, "std": _IMAGE_STD}
        found[key] = {name: torch.tensor(rgb).reshape(3, 1, 1) for name, rgb in pair.items()}
    return found
