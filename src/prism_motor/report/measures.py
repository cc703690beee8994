"""What is measured about an episode, as data, and its mean for every training seed."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from prism_motor.locomotion.conditions import CONDITIONS
from prism_motor.locomotion.evaluation import WalkingEpisode as Episode
from prism_motor.nn.checks import check_choice
from prism_motor.report.arms import Arm


@dataclass(frozen=True)
class Measure:
    """One column of the tables."""

    field: str
    """Field of :class:`prism_motor.locomotion.evaluation.WalkingEpisode`."""
    title: str
    """What it is called."""
    unit: str
    """Unit after scaling."""
    digits: int
    """Decimals that are shown."""
    better: int
    """1 if higher is better, -1 if lower is, 0 if neither is and no claim is made."""
    factor: float = 1.0
    """From the record to the unit."""

    @property
    def heading(self) -> str:
        """Title with unit and direction."""
        arrow = {1: "\u00a0↑", -1: "\u00a0↓", 0: ""}[self.better]
        return f"{self.title}{', ' + self.unit if self.unit else ''}{arrow}"

    def value(self, episode: Episode) -> float | None:
        """Return the value of an episode in the unit, ``None`` if it has none."""
        value = getattr(episode, self.field)
        return None if value is None else self.factor * float(value)

    def write(self, value: float, signed: bool = False) -> str:
        """Write a value with its decimals; a minus, not a hyphen."""
        return f"{value:{'+' if signed else ''}.{self.digits}f}".replace("-", "−")


MEASURES: dict[str, Measure] = {
    measure.field: measure
    for measure in (
        Measure("survived", "survival", "%", 1, 1, 100.0),
        Measure("linear_error", "linear error", "m/s", 3, -1),
        Measure("yaw_error", "yaw error", "rad/s", 3, -1),
        Measure("episode_return", "return", "", 1, 1),
        Measure("seconds", "episode length", "s", 1, 1),
        Measure("swing_apex", "swing apex", "cm", 1, 0, 100.0),
        Measure("double_support", "double support", "%", 1, 0, 100.0),
        Measure("speed_ratio", "speed / commanded", "", 2, 0),
    )
}
"""Measures by field of an episode, those of the paper's Table 1 first. The last three tell walking
from shuffling; none of them is better high or low as such."""

ROBUSTNESS = ("survived", "linear_error", "yaw_error")
"""Measures that are compared under every condition."""

NOMINAL = "nominal"
"""Condition of the main table."""


def find_measure(field: str) -> Measure:
    """Return a measure by field."""
    return MEASURES[check_choice("measure", field, MEASURES)]


def seed_means(arm: Arm, condition: str, measure: Measure) -> dict[int, float]:
    """Return one number a finished training seed: the mean over its episodes that have a value."""
    means = {}
    for seed, run in arm.finished.items():
        values = [v for e in run.episodes(condition) if (v := measure.value(e)) is not None]
        if values:
            means[seed] = statistics.fmean(values)
    return means


def conditions_of(arms: tuple[Arm, ...]) -> list[str]:
    """Return the conditions that any run was evaluated under, in their usual order."""
    found = {one.condition for arm in arms for run in arm.runs.values() for one in run.evaluations}
    known = [name for name in CONDITIONS if name in found]
    return known + sorted(found - {*known})
