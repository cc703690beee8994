"""Small policies and data in LeRobot's terms.

The folder is not called ``lerobot``: pytest puts its parent on the path, where that name would
stand for the library.
"""

import pytest
import torch

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig

from prism.integrations.lerobot import PrismDiffusionConfig

STATE, ACTION, ENV = "observation.state", "action", "observation.environment_state"
CAMERAS = ("observation.images.front", "observation.images.wrist")
SMALL = {"down_dims": (16, 32), "n_groups": 4, "num_inference_steps": 2, "device": "cpu"}


def diffusion_features(kind="images", state=8):
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

    def make(conditioner="prism", kind="images", **fields):
        options = {**SMALL, **diffusion_features(kind), **fields}
        return PrismDiffusionConfig(conditioner=conditioner, **options)

    return make


@pytest.fixture
def lerobot_config():
    """LeRobot's own config of the same size."""

    def make(kind="images", **fields):
        return DiffusionConfig(**{**SMALL, **diffusion_features(kind), **fields})

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
