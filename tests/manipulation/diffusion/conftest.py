from dataclasses import replace

import pytest
import torch

from prism_motor.manipulation.config import (
    ConditionerConfig,
    ImitationConfig,
    NetworkConfig,
    OptimiserConfig,
    TaskConfig,
)
from prism_motor.manipulation.demonstrations.cache import Demonstrations

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


def make_config(conditioner="prism", images=False, **changes):
    cameras = ("corner2",) if images else ()
    config = ImitationConfig(
        preset="state",
        arm=conditioner,
        task=TaskConfig("metaworld", "reach-v3", STATE, OBJECTS, ACTION, cameras),
        demos="made-up",
        conditioner=ConditionerConfig(kind=conditioner, latent=8, mlp_size="larger"),
        network=NetworkConfig(
            inputs="images" if images else "objects",
            image_size=16,
            encoder="small",
            widths=(8, 16),
            inference_steps=2,
        ),
        optimiser=OptimiserConfig(learning_rate=1e-3, warmup=2),
        batch=8,
        steps=12,
        log_every=4,
        checkpoint_every=5,
    )
    return replace(config, **changes)


@pytest.fixture
def demonstrations():
    return make_demonstrations()
