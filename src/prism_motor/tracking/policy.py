"""What is deployed: normaliser, actor and backward map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from prism_motor.tracking.learning.networks import GOAL_STREAMS, BackwardMap, TrackingActor
from prism_motor.tracking.learning.normaliser import ObservationNormaliser

if TYPE_CHECKING:
    from prism_motor.tracking.config import TrackingNetworkConfig
    from prism_motor.tracking.observations import Layout


class TrackingPolicy(nn.Module):
    """pi(a | o, z) and the backward map that turns frames into z.

    Args:
        config: Sizes of the networks.
        layout: The observations.
    """

    def __init__(self, config: TrackingNetworkConfig, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.normaliser = ObservationNormaliser(layout)
        self.actor = TrackingActor(config, layout)
        self.backward_map = BackwardMap(config, layout)

    def forward(self, observations: Tensor, latents: Tensor) -> Tensor:
        """Return the mean actions of raw observations (N, size) under latents (N, d)."""
        return self.actor(self.normaliser(observations), latents)

    @torch.no_grad()
    def encode(self, observations: Tensor) -> Tensor:
        """Return the backward map (..., d) of raw observations (..., size)."""
        flat = observations.reshape(-1, observations.shape[-1])
        goals = self.normaliser(self.layout.select(flat, GOAL_STREAMS), GOAL_STREAMS)
        return self.backward_map(goals).view(*observations.shape[:-1], -1)


def count_deployed(policy: nn.Module) -> int:
    """Count what a deployed policy stores: all parameters and the normaliser's statistics."""
    values = [*policy.parameters(), *policy.buffers()]
    return sum(value.numel() for value in values)
