"""Diffusion Policy as a backbone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from prism_motor._checks import InputError
from prism_motor.manipulation.backbones import Backbone, Statistics
from prism_motor.manipulation.config import ManipulationConfig, NetworkConfig
from prism_motor.manipulation.demonstrations.dataset import STATE
from prism_motor.manipulation.diffusion import network
from prism_motor.manipulation.diffusion.actor import DiffusionActor

if TYPE_CHECKING:
    from prism_motor.manipulation.demonstrations.cache import Demonstrations
    from prism_motor.manipulation.policy import HandlingPolicy
    from prism_motor.manipulation.tasks import Task


class DiffusionBackbone(Backbone):
    """LeRobot's Diffusion Policy: the state history is part of the global condition."""

    name = "diffusion"
    network = NetworkConfig

    def check(self, config: ManipulationConfig) -> None:
        """Raise unless LeRobot accepts the settings."""
        if config.optimiser.last_rate:
            raise InputError(
                f"optimiser.last_rate is {config.optimiser.last_rate:g}, but the schedule of "
                "diffusion ends at 0: leave it out."
            )
        network.make_policy_config(config)

    def make_policy(self, config: ManipulationConfig, device: str = "cpu") -> Any:
        """Build the policy with random initial weights."""
        return network.make_policy(config, device)

    def make_processors(self, policy: Any, statistics: Statistics) -> tuple[Any, Any]:
        """Return LeRobot's pipelines."""
        return network.make_processors(policy, statistics)

    def measure_statistics(self, demonstrations: Demonstrations) -> Statistics:
        """Return ranges of numbers, and ImageNet's mean and deviation of images."""
        return network.measure_statistics(demonstrations)

    def make_actor(self, policy: HandlingPolicy, task: Task) -> DiffusionActor:
        """Return the acting policy; it has only one task."""
        return DiffusionActor(policy)

    def conditioner(self, policy: Any) -> nn.Module | None:
        """Return the conditioner of the state history."""
        return policy.diffusion.conditioner

    def conditioner_inputs(self, policy: HandlingPolicy, states: Tensor) -> Tensor:
        """Normalise every step of the histories."""
        steps = states.reshape(-1, policy.config.task.state)
        return policy.normalise({STATE: steps})[STATE].reshape(len(states), -1)


DIFFUSION = DiffusionBackbone()
"""LeRobot's Diffusion Policy."""
