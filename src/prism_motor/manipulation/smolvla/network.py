"""SmolVLA of a run and its normalisation, as LeRobot defines them."""

from __future__ import annotations

import io
import math
from contextlib import redirect_stdout
from importlib import metadata
from typing import TYPE_CHECKING, Any

import torch

from prism_motor._extras import missing_extra
from prism_motor.manipulation.demonstrations.dataset import ACTION, STATE
from prism_motor.manipulation.lerobot_config import make_lerobot_config
from prism_motor.manipulation.smolvla.config import SmolVLANetworkConfig
from prism_motor.manipulation.smolvla.vlm import find_vlm, is_random, set_random_weights

if TYPE_CHECKING:
    from prism_motor.manipulation.backbones import Statistics
    from prism_motor.manipulation.config import ManipulationConfig
    from prism_motor.manipulation.demonstrations.cache import Demonstrations

VLM = "model.vlm_with_expert.vlm."
"""How the names of the vision-language model's weights begin."""


def lerobot_version() -> str:
    """Return the installed version of LeRobot without its patch level."""
    try:
        return ".".join(metadata.version("lerobot").split(".")[:2])
    except metadata.PackageNotFoundError as error:
        raise missing_extra("SmolVLA", "manipulation", ImportError(str(error))) from error


def make_policy_config(config: ManipulationConfig, device: str = "cpu") -> Any:
    """Return LeRobot's config of the policy on a device."""
    network, optimiser = config.network, config.optimiser
    assert isinstance(network, SmolVLANetworkConfig)
    own = {
        "vlm_model_name": find_vlm(network.vlm),
        "load_vlm_weights": not is_random(network.vlm),
        "num_vlm_layers": network.vlm_layers,
        "expert_width_multiplier": network.expert_width,
        "resize_imgs_with_padding": (network.encoder_size, network.encoder_size),
        "chunk_size": network.horizon,
        "num_steps": network.inference_steps,
        "optimizer_grad_clip_norm": optimiser.gradient_norm,
        "scheduler_decay_steps": config.updates,
        "scheduler_decay_lr": optimiser.last_rate,
    }
    return make_lerobot_config("PrismSmolVLAConfig", config, device, own)


def make_policy(config: ManipulationConfig, device: str = "cpu") -> Any:
    """Build the policy on a device: the frozen model from its source, the rest at random."""
    from prism_motor.integrations.lerobot import PrismSmolVLAPolicy

    with redirect_stdout(io.StringIO()):  # LeRobot prints how many layers it keeps
        policy = PrismSmolVLAPolicy(make_policy_config(config, device))
    assert isinstance(config.network, SmolVLANetworkConfig)
    if is_random(config.network.vlm):
        set_random_weights(policy.model.vlm_with_expert.vlm)
    return policy.to(torch.device(device))


def make_processors(policy: Any, statistics: Statistics) -> tuple[Any, Any]:
    """Return LeRobot's pipelines: observations to network inputs, and outputs to actions."""
    from lerobot.policies.smolvla.processor_smolvla import make_smolvla_pre_post_processors

    return make_smolvla_pre_post_processors(policy.config, dataset_stats=statistics)


def measure_statistics(demonstrations: Demonstrations) -> Statistics:
    """Return mean and deviation of state and action; images stay as they are."""
    found: Statistics = {}
    # Smaller deviations are raised to that of a uniform distribution over the smallest range.
    smallest = demonstrations.smallest_range / math.sqrt(12)
    for key in (STATE, ACTION):
        values = demonstrations.vectors[key].double()
        spread = values.std(0, correction=0).clamp(min=smallest)
        found[key] = {"mean": values.mean(0).float(), "std": spread.float()}
    return found
