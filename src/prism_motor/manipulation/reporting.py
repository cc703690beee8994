"""What reports must know about policies that handle things."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from prism_motor.manipulation.config import KIND, ImitationConfig
from prism_motor.manipulation.perturbations import PERTURBATIONS
from prism_motor.reporting import MINUTES, Axis, Quantity, ReportSpec, Variant
from prism_motor.runs.configs import from_dict, to_dict
from prism_motor.statistics import Measure

MEASURES = (
    Measure("success", "success", "%", 1, True, 100.0),
    Measure("smoothness", "smoothness", "", 4, False),
    Measure("position_error", "position error", "mm", 1, False, 1000.0),
    Measure("orientation_error", "orientation error", "rad", 4, False),
)
"""What is measured about an episode."""


class HandlingReport(ReportSpec):
    """Policies that learned from demonstrations."""

    kind = KIND
    aliases: ClassVar = {"mlp": "mlp-matched", "mlp-larger": "mlp-large"}
    references = ("mlp-matched", "mlp-large", "linear")
    measures = MEASURES
    robust = ("success",)
    run_measures = tuple(measure.field for measure in MEASURES)
    of_successes = True
    measures_note = (
        "Errors are between the pose that an action commands and the pose that is reached."
    )
    shows_episodes = True
    conditions = tuple(PERTURBATIONS)
    plain_title = "Without perturbation"
    other_conditions = "perturbations"
    away = "Under perturbations:"
    curves = (Quantity("loss", "training loss", log_scale=True),)
    axes = (Axis("iteration", "updates"), MINUTES)
    free = (
        "seed", "threads", "device", "demos", "steps", "log_every", "checkpoint_every",
        "keep_checkpoints",
    )  # fmt: skip
    network = "conditioner"
    usual: ClassVar = {"conditioner.degree": 2}

    def read_config(self, data: dict[str, Any], where: str) -> ImitationConfig:
        """Return the settings of a run from its config.json, with present names."""
        config = from_dict(ImitationConfig, data, where)
        return replace(config, arm=self.arm(config.arm))

    def updates(self, config: ImitationConfig) -> int:
        """Return how many updates were planned."""
        return config.steps

    def title(self, configs: Sequence[ImitationConfig]) -> str:
        """Return what the task of some runs is called."""
        task = configs[0].task
        return f"{task.suite} {task.name}, {self.group(configs[0])}"

    def task_key(self, config: ImitationConfig) -> str:
        """Return what a run learned, and from what: presets differ in what a policy sees."""
        return json.dumps([to_dict(config.task), config.preset])

    def group(self, config: ImitationConfig) -> str:
        """Return the preset: tasks that were learned with the same one are also averaged."""
        return f"preset {config.preset}"

    def family(self, config: ImitationConfig) -> str:
        """Return the suite."""
        return config.task.suite

    def caption(self, config: ImitationConfig) -> str:
        """Return what a video of a run shows."""
        return f"{config.arm}, {config.preset}, {config.task.name}, seed {config.seed}"

    def variant(self, protocol: Mapping[str, Any]) -> Variant:
        """Return the corrector and the stiffness of an evaluation."""
        corrector, stiffness = protocol["corrector"], protocol.get("stiffness")
        return Variant(
            "" if corrector == "none" else corrector,
            "" if stiffness is None else f"Kp {stiffness:g}",
        )

    def extent(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Say how many episodes were evaluated."""
        return f"{len(episodes)} episodes each"

    def scope(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Say which initial states were evaluated."""
        states = sorted(row.get("initial_state", -1) for row in episodes)
        return f"{len(states)} initial states ({states[0]} to {states[-1]})"


REPORT = HandlingReport()
"""The one object of this domain."""
