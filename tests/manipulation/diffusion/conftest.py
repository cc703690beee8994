from dataclasses import replace

import pytest
import torch

from prism_motor.manipulation.config import (
    HandlingTask,
    ManipulationConfig,
    NetworkConfig,
    OptimiserConfig,
)
from prism_motor.manipulation.demonstrations.cache import Demonstrations
from prism_motor.manipulation.presets import ARMS

STATE, OBJECTS, ACTION = 11, 10, 4


def make_demonstrations(images=False, lengths=(30, 25)):
    """Made up: actions that follow from what is seen."""
    generator = torch.Generator().manual_seed(0)
    steps = sum(lengths)
    state = torch.rand(steps, STATE, generator=generator)
    objects = torch.rand(steps, OBJECTS, generator=generator)
    vectors = {"observation.state": state, "action": torch.tanh(objects[:, :ACTION] - 0.5)}
    pictures = {}
    if images:
        pictures["observation.images.corner2"] = torch.randint(
            0, 256, (steps, 3, 16, 16), dtype=torch.uint8, generator=generator
        )
    else:
        vectors["observation.environment_state"] = objects
    return Demonstrations(vectors, pictures, torch.tensor(lengths).cumsum(0))


def make_config(arm="prism", images=False, **changes):
    """A run on made-up demonstrations, small enough for a test."""
    cameras = ("corner2",) if images else ()
    config = ManipulationConfig(
        preset="state",
        arm=arm,
        task=HandlingTask("metaworld", "reach-v3", STATE, OBJECTS, ACTION, cameras),
        demos="made-up",
        conditioner=replace(ARMS[arm], latent=8),
        network=NetworkConfig(
            inputs="images" if images else "objects",
            image_size=16,
            encoder="small",
            widths=(8, 16),
            inference_steps=2,
        ),
        optimiser=OptimiserConfig(learning_rate=1e-3, warmup=2),
        batch=8,
        updates=12,
        log_every=4,
        checkpoint_every=5,
    )
    return replace(config, **changes)


def demonstrations_of(config):
    """Stand in for what a run reads from its folder of demonstrations."""
    return make_demonstrations(config.network.inputs == "images")


@pytest.fixture
def demonstrations():
    return make_demonstrations()
