"""Backbones: the policies that a conditioner can be part of, as values of one table.

Training, loading, acting, probing and exporting are written once; whatever differs between
Diffusion Policy and SmolVLA is a method of a :class:`Backbone`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from prism_motor._registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

    from prism_motor.manipulation.config import ManipulationConfig, PolicyNetwork
    from prism_motor.manipulation.demonstrations.cache import Demonstrations
    from prism_motor.manipulation.environment import HandlingActor
    from prism_motor.manipulation.policy import HandlingPolicy
    from prism_motor.manipulation.tasks import Task

Statistics = dict[str, dict[str, Tensor]]
"""Statistics of the demonstrations for LeRobot's normalisation, by column and name."""


class Backbone(ABC):
    """A policy of LeRobot with our conditioner in it."""

    name: ClassVar[str]
    """Its name in settings and presets."""
    network: ClassVar[type[PolicyNetwork]]
    """Settings of the policy around the conditioner."""
    follows_instructions: ClassVar[bool] = False
    """Whether it is told what to do, so that one policy can learn several tasks."""

    def prepare(self, config: ManipulationConfig) -> ManipulationConfig:
        """Fill in what follows from the installation, before anything is written."""
        return config

    def check_early(self, config: ManipulationConfig) -> None:  # noqa: B027
        """Raise if something is missing on this machine, before a simulator is built."""

    @abstractmethod
    def check(self, config: ManipulationConfig) -> None:
        """Raise unless the policy can be built, before data are read."""

    def check_instructions(self, policy: Any, instructions: Sequence[str]) -> None:  # noqa: B027
        """Raise unless the policy can tell instructions apart."""

    @abstractmethod
    def make_policy(self, config: ManipulationConfig, device: str = "cpu") -> Any:
        """Build LeRobot's policy on a device, with random initial weights where it learns."""

    @abstractmethod
    def make_processors(self, policy: Any, statistics: Statistics) -> tuple[Any, Any]:
        """Return LeRobot's pipelines: observations to network inputs, and outputs to actions."""

    @abstractmethod
    def measure_statistics(self, demonstrations: Demonstrations) -> Statistics:
        """Return the statistics for LeRobot's normalisation."""

    @abstractmethod
    def make_actor(self, policy: HandlingPolicy, task: Task) -> HandlingActor:
        """Return the policy acting on one of its tasks."""

    def frozen(self, policy: Any) -> frozenset[str]:
        """Return the names of the weights that are never trained, which checkpoints leave out."""
        return frozenset()

    def describe_frozen(self, policy: Any) -> str:
        """Name the part whose weights are never trained, for messages."""
        return f"The frozen part of {self.name}"

    @abstractmethod
    def conditioner(self, policy: Any) -> nn.Module | None:
        """Return the conditioner; ``None`` if the state enters as it is."""

    @abstractmethod
    def conditioner_inputs(self, policy: HandlingPolicy, states: Tensor) -> Tensor:
        """Return what the conditioner gets for histories of the state, (rows, steps x state)."""

    def export(self, policy: HandlingPolicy, folder: Path, final: Path) -> None:
        """Write a LeRobot pretrained folder.

        Args:
            policy: The policy.
            folder: Where to write.
            final: What the folder will be called.
        """
        policy.network.save_pretrained(folder)
        policy.normalise.save_pretrained(folder)
        policy.denormalise.save_pretrained(folder)


BACKBONES: Registry[Backbone] = Registry(
    "backbone",
    {
        "diffusion": "prism_motor.manipulation.diffusion.backbone:DIFFUSION",
        "smolvla": "prism_motor.manipulation.smolvla.backbone:SMOLVLA",
    },
)
"""Backbones by name."""
