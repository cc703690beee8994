"""Demonstrations of the right shape without content, to measure the speed of training by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor.manipulation.demonstrations.cache import Demonstrations, StoredImages
from prism_motor.manipulation.demonstrations.dataset import ACTION, OBJECTS, STATE, image_key

if TYPE_CHECKING:
    from prism_motor.manipulation.config import ManipulationConfig

_EPISODES, _STEPS = 2, 100


def make_up(config: ManipulationConfig) -> Demonstrations:
    """Return random demonstrations for a prepared run."""
    task, network = config.task, config.network
    generator = torch.Generator().manual_seed(0)
    steps = _EPISODES * (_STEPS + network.horizon + network.dropped)
    sizes = {STATE: task.state, ACTION: task.action}
    if network.inputs == "objects":
        sizes[OBJECTS] = task.objects
    vectors = {name: torch.rand(steps, size, generator=generator) for name, size in sizes.items()}
    side = network.image_size
    images: dict[str, Tensor | StoredImages] = {
        image_key(camera): torch.randint(
            0, 256, (steps, 3, side, side), dtype=torch.uint8, generator=generator
        )
        for camera in (task.cameras if network.inputs == "images" else ())
    }
    ends = torch.arange(1, _EPISODES + 1) * (steps // _EPISODES)
    return Demonstrations(vectors, images, ends, ("do it",) * _EPISODES)
