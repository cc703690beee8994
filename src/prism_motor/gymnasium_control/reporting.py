"""What reports need to know about Gymnasium's environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prism_motor.gymnasium_control.policy import actor_outputs
from prism_motor.reporting import MINUTES, Axis, Quantity, ReportSpec
from prism_motor.statistics.claims import Measure

if TYPE_CHECKING:
    from prism_motor.domains import Domain
    from prism_motor.gymnasium_control.config import ControlConfig

MEASURES = (
    Measure("completed", "completed", "%", 1, True, 100.0),
    Measure("episode_return", "return", "", 0, True),
    Measure("steps", "episode length", "steps", 0, None),
    Measure("forward_speed", "forward speed", "m/s", 2, None),
)
"""What is measured per episode. The return is what is learned; for length and speed it says
already how much they count."""


class ControlReport(ReportSpec):
    """Policies of Gymnasium's environments."""

    measures_note = (
        "Completed: episodes that lasted until the time limit. The return is the sum of the "
        "environment's rewards, neither discounted nor normalised."
    )
    axes = (Axis("samples", "thousand steps", 1e-3), MINUTES)
    network = "actor"
    decisive_packages = ("gymnasium", "mujoco", "stable-baselines3")

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.robust = ("completed", "episode_return")
        self.curves = (Quantity("episode_return", "return in training"),)

    def parameters(self, config: ControlConfig) -> int | None:
        """Return the parameters of the actor as it is trained, with all its heads."""
        import torch

        from prism_motor.nn import build_actor, count_parameters

        task = config.task
        if not task.observations:
            return None
        outputs = actor_outputs(config.algorithm, task.actions)
        with torch.device("meta"):  # initial weights would take random numbers from a training
            return count_parameters(build_actor(config.actor, task.observations, outputs))

    def samples_per_update(self, config: ControlConfig) -> int:
        """Return the steps of all environments in one update."""
        return config.samples_per_update

    def extent(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Return how many episodes were evaluated."""
        return f"{len(episodes)} episodes each"

    def portrait(self, found: Mapping[str, str]) -> str:
        """Describe how an arm does."""
        return f"has a return of {found['episode_return']}" if "episode_return" in found else ""
