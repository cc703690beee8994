"""Your own actor: the observation and its squares, mixed, in front of the trunk."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from prism_motor.nn import ActorConfig, register_actor


class Squares(nn.Module):
    """Mixes inputs and their squares."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(2 * inputs, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features."""
        return torch.tanh(self.mix(torch.cat([x, x.square()], dim=-1)))


@register_actor
@dataclass(frozen=True)
class SquaresActorConfig(ActorConfig):
    """Squares in front of the trunk; ``mlp-matched-squares`` is its control of equal size."""

    name: ClassVar[str] = "squares"

    latent: int = 64
    """Width of the features."""

    def make_encoder(self, in_features: int) -> nn.Module:
        """Build what stands in front of the trunk."""
        return Squares(in_features, self.latent)

    def encoded_size(self, in_features: int) -> int:
        """Return the trunk's input size."""
        return self.latent
