"""What reports need to know about walking."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from prism_motor.reporting import MINUTES, Axis, Quantity, ReportSpec
from prism_motor.statistics.claims import Measure

if TYPE_CHECKING:
    from prism_motor.domains import Domain
    from prism_motor.locomotion.config import LocomotionConfig

MEASURES = (
    Measure("survived", "survival", "%", 1, True, 100.0),
    Measure("linear_error", "linear error", "m/s", 3, False),
    Measure("yaw_error", "yaw error", "rad/s", 3, False),
    Measure("episode_return", "return", "", 1, True),
    Measure("seconds", "episode length", "s", 1, True),
    Measure("swing_apex", "swing apex", "cm", 1, None, 100.0),
    Measure("double_support", "double support", "%", 1, None, 100.0),
    Measure("speed_ratio", "speed / commanded", "", 2, None),
)
"""What is measured per episode, the paper's Table 1 first. The last three distinguish walking from
shuffling; for none of them is higher or lower better as such."""


class WalkingReport(ReportSpec):
    """Policies that walk."""

    iqm_over_conditions = True
    axes = (Axis("samples", "million samples", 1e-6), MINUTES)
    network = "actor"
    usual: ClassVar = {"actor.degree": 2}
    versioned: ClassVar = {"simulation.solver": "the contact solver"}

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.robust = ("survived", "linear_error", "yaw_error")
        self.run_measures = (*self.robust, "speed_ratio")
        self.curves = (
            Quantity("reward_per_second", "reward per second", "1/s"),
            Quantity("linear_error", "linear error", "m/s"),
            Quantity(
                "seconds_between_falls", "time between falls", "s", log_scale=True, of_rates=True
            ),
        )

    def title(self, configs: Sequence[LocomotionConfig]) -> str:
        """Return the presets and the robot."""
        presets = sorted({config.preset for config in configs})
        return f"{' and '.join(presets)} ({configs[0].task.robot})"

    def task_key(self, config: LocomotionConfig) -> str:
        """Return only the task: presets with the same task may share a table."""
        return json.dumps(self.task_settings(config))

    def parameters(self, config: LocomotionConfig) -> int:
        """Return the parameters of the actor."""
        import torch

        from prism_motor.locomotion.observations import observation_size, resolve_bypass
        from prism_motor.nn import build_actor, count_parameters

        inputs, outputs = observation_size(config.task)
        actor = resolve_bypass(config.actor, config.task)
        with torch.device("meta"):  # initial weights would take random numbers from a training
            return count_parameters(build_actor(actor, inputs, outputs))

    def samples_per_update(self, config: LocomotionConfig) -> int:
        """Return the control steps of all environments in one update."""
        return config.samples_per_update

    def extent(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Return how many episodes of how many environments were evaluated."""
        return f"{protocol['envs']} × {protocol['episodes']} episodes"

    def portrait(self, found: Mapping[str, str]) -> str:
        """Describe how an arm walks; shuffling must not pass for walking."""
        text = f"survives {found['survived']} %"
        if {"speed_ratio", "swing_apex"} <= found.keys():
            text += (
                f" at {found['speed_ratio']} of the commanded speed (swing apex "
                f"{found['swing_apex']} cm, double support {found['double_support']} %)"
            )
        return text
