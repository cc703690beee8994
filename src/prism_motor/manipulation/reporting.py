"""What reports need to know about manipulation policies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from prism_motor.reporting import Execution, Quantity, ReportSpec
from prism_motor.statistics.claims import Measure

if TYPE_CHECKING:
    from prism_motor.domains import Domain
    from prism_motor.manipulation.config import ManipulationConfig

MEASURES = (
    Measure("success", "success", "%", 1, True, 100.0),
    Measure("smoothness", "smoothness", "", 4, False),
    Measure("position_error", "position error", "mm", 1, False, 1000.0),
    Measure("orientation_error", "orientation error", "rad", 4, False),
)
"""Measures of an episode."""


class HandlingReport(ReportSpec):
    """Policies that learned from demonstrations."""

    of_successes = True
    measures_note = (
        "Errors are between the pose that an action commands and the pose that is reached."
    )
    shows_episodes = True
    other_conditions = "perturbations"
    free = (*ReportSpec.free, "device", "demos", "log_every")
    network = "conditioner"
    usual: ClassVar = {"conditioner.degree": 2}

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.references = (domain.reference, "mlp-large", "linear")
        self.plain_title = "Without perturbation"
        self.away = "Under perturbations:"
        self.curves = (Quantity("loss", "training loss", log_scale=True),)

    def title(self, configs: Sequence[ManipulationConfig]) -> str:
        """Return suite, task and preset."""
        return f"{self.domain.task_name(configs[0])}, {self.group(configs[0])}"

    def task_key(self, config: ManipulationConfig) -> str:
        """Return the task and the preset, because presets differ in the policy's inputs."""
        return json.dumps([self.task_settings(config), config.preset])

    def group(self, config: ManipulationConfig) -> str:
        """Return the preset: tasks learned with the same one are also averaged."""
        return f"preset {config.preset}"

    def family(self, config: ManipulationConfig) -> str:
        """Return the suite."""
        return config.task.suite

    def caption(self, config: ManipulationConfig) -> str:
        """Return the caption of a run's video."""
        return f"{config.arm}, {config.preset}, {config.task.name}, seed {config.seed}"

    def execution(self, protocol: Mapping[str, Any]) -> Execution:
        """Return the corrector and the stiffness of an evaluation."""
        corrector, stiffness = protocol["corrector"], protocol.get("stiffness")
        return Execution(
            "" if corrector == "none" else corrector,
            "" if stiffness is None else f"Kp {stiffness:g}",
        )

    def scope(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Describe which initial states were evaluated."""
        states = sorted(row.get("initial_state", -1) for row in episodes)
        return f"{len(states)} initial states ({states[0]} to {states[-1]})"
