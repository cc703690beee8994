"""Small policies and data in LeRobot's terms; LeRobot is imported where it is used."""

import pytest
import torch

STATE, ACTION, ENV = "observation.state", "action", "observation.environment_state"
CAMERAS = ("observation.images.front", "observation.images.wrist")
SMALL = {"down_dims": (16, 32), "n_groups": 4, "num_inference_steps": 2, "device": "cpu"}
# What LeRobot 0.4 had by default; 0.6 has other values.
DEFAULTS = {
    "horizon": 16,
    "n_action_steps": 8,
    "drop_n_last_frames": 7,
    "pretrained_backbone_weights": None,
    "use_group_norm": True,
    "use_separate_rgb_encoder_per_camera": False,
}


def diffusion_features(kind="images", state=8):
    from lerobot.configs.types import FeatureType, PolicyFeature

    inputs = {STATE: PolicyFeature(FeatureType.STATE, (state,))}
    if kind == "images":
        inputs |= {name: PolicyFeature(FeatureType.VISUAL, (3, 32, 32)) for name in CAMERAS}
    else:
        inputs[ENV] = PolicyFeature(FeatureType.ENV, (5,))
    return {
        "input_features": inputs,
        "output_features": {ACTION: PolicyFeature(FeatureType.ACTION, (7,))},
    }


@pytest.fixture
def make_config():
    """A small ``prism_diffusion`` config."""
    from prism_motor.integrations.lerobot import PrismDiffusionConfig

    def make(conditioner="prism", kind="images", **fields):
        options = {**SMALL, **diffusion_features(kind), **fields}
        return PrismDiffusionConfig(conditioner=conditioner, **options)

    return make


@pytest.fixture
def lerobot_config():
    """LeRobot's own config of the same size."""
    from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig

    def make(kind="images", **fields):
        return DiffusionConfig(**{**SMALL, **DEFAULTS, **diffusion_features(kind), **fields})

    return make


@pytest.fixture
def make_batch():
    """A batch as LeRobot's dataset and processors give it."""

    def make(kind="images", size=3):
        batch = {
            STATE: torch.rand(size, 2, 8) * 2 - 1,
            ACTION: torch.rand(size, 16, 7) * 2 - 1,
            "action_is_pad": torch.zeros(size, 16, dtype=torch.bool),
        }
        if kind == "images":
            batch |= {name: torch.rand(size, 2, 3, 32, 32) for name in CAMERAS}
        else:
            batch[ENV] = torch.randn(size, 2, 5)
        return batch

    return make
