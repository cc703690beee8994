"""What reports need to know about tracking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from prism_motor._checks import InputError
from prism_motor.reporting import (
    MINUTES,
    PLAIN,
    Axis,
    Baseline,
    Execution,
    Place,
    Quantity,
    ReportSpec,
)
from prism_motor.statistics.claims import Measure

if TYPE_CHECKING:
    from prism_motor.domains import Domain
    from prism_motor.tracking.config import TrackingConfig

POLICY_MEASURES = (
    Measure("stood", "stayed up", "%", 1, True, 100.0),
    Measure("upright", "upright", "% of frames", 1, True, 100.0, (0.0, 100.0)),
    Measure("emd", "EMD", "rad", 3, False),
    Measure("time_to_fall", "time to fall", "s", 1, True),
    Measure("joint_distance", "joint distance", "mrad", 0, False),
    Measure("root_drift", "root drift", "m", 2, False),
    Measure("foot_slip", "foot slip", "m/s", 3, False),
)
"""What is measured of a policy. EMD is blind to falling, so upright comes first."""

BASELINES = tuple(
    Baseline(f"{title} (no policy)", {field: f"{name}_{field}" for field in ("upright", "emd")})
    for name, title in (
        ("open_loop", "open loop"),
        ("default_pose", "default pose"),
        ("mean_pose", "mean pose"),
    )
)
"""What needs no policy: drives that aim at each next frame, and two held poses."""


def _baseline_measures() -> Iterator[Measure]:
    known = {measure.field: measure for measure in POLICY_MEASURES}
    for baseline in BASELINES:
        for field, name in baseline.fields.items():
            one = known[field]
            title = f"{one.title}, {baseline.title.removesuffix(' (no policy)')}"
            yield replace(one, field=name, title=title, higher_is_better=None)


MEASURES = (*POLICY_MEASURES, *_baseline_measures())
"""What an episode holds."""


class TrackingReport(ReportSpec):
    """Policies that track motions."""

    measures_note = (
        "EMD compares joint angles alone: a robot on the floor can have a small one. Read it with "
        "the share of upright frames, and with what needs no policy: drives that aim at each next "
        "frame (open loop), and held poses."
    )
    axes = (Axis("samples", "million samples", 1e-6), MINUTES)
    network = "networks"
    versioned: ClassVar = {"solver": "the contact solver"}
    baselines = BASELINES
    companions: ClassVar = {"emd": "upright"}
    averaged = ("nominal", "low-friction", "payload")
    by_task = "emd"
    task_word = "motion"
    iqm_over_tasks = False

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.measures = POLICY_MEASURES
        self.robust = ("stood", "upright", "emd")
        self.run_measures = ("upright", "emd", "time_to_fall", "root_drift")
        self.curves = (
            Quantity("upright", "upright"),
            Quantity("tracking_reward", "reward of the warm start"),
        )

    def place(self, config: Any, episode: Mapping[str, Any]) -> Place:
        """Return the clip."""
        return Place("", episode["clip"])

    def execution(self, protocol: Mapping[str, Any]) -> Execution:
        """Refuse what was tracked besides the clips of the training: arms may differ in it."""
        if protocol["clips"]:
            raise InputError("it is about other clips than those of the training")
        return PLAIN

    def parameters(self, config: TrackingConfig) -> int:
        """Return what a deployed policy stores."""
        import torch

        from prism_motor.tracking.policy import TrackingPolicy, count_deployed

        with torch.device("meta"):
            policy = TrackingPolicy(config.networks, config.task.layout)
        return count_deployed(policy)

    def extent(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Return how many pieces of how many clips were tracked."""
        clips = {episode["clip"] for episode in episodes}
        return f"{len(episodes)} pieces of {len(clips)} clips"
