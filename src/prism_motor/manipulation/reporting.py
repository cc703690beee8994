"""What reports need to know about manipulation policies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from prism_motor.reporting import EVALUATED_BY, Execution, Place, Quantity, ReportSpec
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
    free = (*ReportSpec.free, "demos", "log_every")
    network = "conditioner"
    usual: ClassVar = {"conditioner.degree": 2}
    decisive_packages = ("lerobot",)
    families: ClassVar = {
        "libero_spatial": "Spatial",
        "libero_object": "Object",
        "libero_goal": "Goal",
        "libero_10": "Long",
    }

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

    def place(self, config: ManipulationConfig, episode: Mapping[str, Any]) -> Place:
        """Return suite and task by the episode's labels; a policy may know several."""
        suite, task = episode.get("suite"), episode.get("task")
        return Place(suite or config.task.suite, task or config.task.name)

    def caption(self, config: ManipulationConfig) -> str:
        """Return the caption of a run's video."""
        return f"{config.arm}, {config.preset}, {config.task.name}, seed {config.seed}"

    def execution(self, protocol: Mapping[str, Any]) -> Execution:
        """Return corrector, stiffness and, if it was not prism, the program of an evaluation."""
        corrector, stiffness = protocol["corrector"], protocol.get("stiffness")
        settings = [] if stiffness is None else [f"Kp {stiffness:g}"]
        settings += [protocol[EVALUATED_BY]] if EVALUATED_BY in protocol else []
        return Execution("" if corrector == "none" else corrector, ", ".join(settings))

    def scope(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Describe which initial states were evaluated, of how many tasks."""
        states = sorted(row.get("initial_state", -1) for row in episodes)
        tasks = len({(row.get("suite"), row.get("task")) for row in episodes})
        of_tasks = f" of {tasks} tasks" if tasks > 1 else ""
        return f"{len(states)} initial states ({states[0]} to {states[-1]}){of_tasks}"
