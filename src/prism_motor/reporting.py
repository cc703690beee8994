"""What a domain tells reports: measures, conditions, names, and how its records are read.

Reports are written once for all domains. Whatever differs between walking and handling is an
attribute or a small function of a :class:`ReportSpec`, which lives in the domain's own folder.
"""

from __future__ import annotations

import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

from prism_motor._errors import InputError
from prism_motor.runs.configs import to_dict
from prism_motor.statistics.claims import Measure

DEFAULT_KIND = "locomotion"
"""Kind of runs whose config.json names none: the first ones were all of it."""

SPECS: dict[str, str] = {
    "locomotion": "prism_motor.locomotion.reporting:REPORT",
    "manipulation": "prism_motor.manipulation.reporting:REPORT",
}
"""Where the spec of each kind of run is found."""


class Variant(NamedTuple):
    """How a trained policy was executed in an evaluation; different ways are never mixed."""

    added: str = ""
    """What changed its actions, e.g. a compliance controller; empty if nothing did."""
    setting: str = ""
    """How the robot was set up, if not as usual, e.g. ``Kp 50``."""

    def label(self, name: str) -> str:
        """Return what something is called that was executed like this."""
        text = f"{name} + {self.added}" if self.added else name
        return f"{text}, {self.setting}" if self.setting else text


PLAIN = Variant()
"""A policy executed as it was trained."""


@dataclass(frozen=True)
class Quantity:
    """Something that training logs, drawn as a learning curve."""

    key: str
    """Name in metrics.jsonl."""
    title: str
    """What it is called."""
    unit: str = ""
    """Unit."""
    log_scale: bool = False
    """Whether factors matter more than differences."""
    of_rates: bool = False
    """Whether neighbours are averaged by their inverse: times between events add up as rates."""


@dataclass(frozen=True)
class Axis:
    """What a learning curve is drawn over."""

    key: str
    """Name in metrics.jsonl."""
    title: str
    """What it is called."""
    factor: float = 1.0
    """From the record to the chart."""


MINUTES = Axis("seconds", "minutes of training", 1 / 60)
"""The cost of learning in time."""


class ReportSpec(ABC):
    """Everything that a report must know about a domain; one object per domain."""

    kind: ClassVar[str]
    """Name of the domain, as in config.json."""
    aliases: ClassVar[Mapping[str, str]] = {}
    """Present names of arms by the names that old runs and campaigns have."""
    references: ClassVar[Sequence[str]] = ("mlp-matched",)
    """Arms to compare with: the first of them that a section has."""

    measures: ClassVar[Sequence[Measure]]
    """What is measured about an episode; the first one is a rate, in percent."""
    robust: ClassVar[Sequence[str]]
    """Fields of the measures that are compared under every condition, the rate first."""
    run_measures: ClassVar[Sequence[str]]
    """Fields of the measures that are listed for every single training."""
    of_successes: ClassVar[bool] = False
    """Whether measures are also given over successful episodes alone."""
    measures_note: ClassVar[str] = ""
    """What one must know about the measures, below the main table."""
    shows_episodes: ClassVar[bool] = False
    """Whether the main table says how many episodes stand behind an arm."""

    conditions: ClassVar[Sequence[str]]
    """Names of all conditions, the plain one first."""
    plain_title: ClassVar[str]
    """Heading of the table of the plain condition."""
    other_conditions: ClassVar[str]
    """What the other conditions are called together."""
    away: ClassVar[str]
    """How the sentence about the other conditions begins."""
    iqm_over_conditions: ClassVar[bool] = False
    """Whether the interquartile mean over all conditions is shown."""

    portrait_subject: ClassVar[str] = ""
    """How the sentence about the arms' behaviour begins; see :meth:`portrait`."""

    curves: ClassVar[Sequence[Quantity]] = ()
    """Quantities of the learning curves."""
    axes: ClassVar[Sequence[Axis]] = ()
    """What they are drawn over."""

    free: ClassVar[Sequence[str]]
    """Settings in which the runs of one arm may differ."""
    network: ClassVar[str]
    """Setting that holds the network, which is what arms differ in."""
    usual: ClassVar[Mapping[str, Any]] = {}
    """Settings that an arm's label names whenever they have another value than this."""
    evaluation_schema: ClassVar[int] = 1
    """Version of the evaluation files that can be read."""

    @abstractmethod
    def read_config(self, data: dict[str, Any], where: str) -> Any:
        """Return the settings of a run from its config.json, with present names."""

    @abstractmethod
    def updates(self, config: Any) -> int:
        """Return how many updates were planned."""

    @abstractmethod
    def title(self, configs: Sequence[Any]) -> str:
        """Return what the task of some runs is called."""

    def task_key(self, config: Any) -> str:
        """Return what a run learned; runs that differ in it never share a table."""
        return json.dumps(to_dict(config.task))

    def group(self, config: Any) -> str:
        """Return what makes tasks comparable, so that they are also averaged; empty if nothing."""
        return ""

    def family(self, config: Any) -> str:
        """Return the family of tasks that a run belongs to; empty if there are none."""
        return ""

    def parameters(self, config: Any) -> int | None:
        """Return the parameters of the policy network; ``None`` to show no such column."""
        return None

    def samples_per_update(self, config: Any) -> int | None:
        """Return the samples of one update; ``None`` if budgets are given in updates."""
        return None

    def caption(self, config: Any) -> str:
        """Return what a video of a run shows."""
        return f"{config.arm}, {config.preset}, seed {config.seed}"

    def variant(self, protocol: Mapping[str, Any]) -> Variant:
        """Return how the policy of an evaluation was executed."""
        return PLAIN

    @abstractmethod
    def extent(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Say how much was evaluated, in short."""

    def scope(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Say what was evaluated; evaluations that differ in it were not made alike."""
        return self.extent(protocol, episodes)

    def portrait(self, found: Mapping[str, str]) -> str:
        """Describe how an arm behaves by its numbers, by field; empty for nothing to say."""
        return ""

    def arm(self, name: str) -> str:
        """Return the present name of an arm."""
        return self.aliases.get(name, name)

    def measure(self, field: str) -> Measure:
        """Return a measure by field."""
        return next(measure for measure in self.measures if measure.field == field)

    @property
    def rate(self) -> Measure:
        """The measure that is a rate of episodes."""
        return self.measures[0]

    @property
    def plain(self) -> str:
        """Name of the plain condition."""
        return self.conditions[0]


@cache
def spec_of(kind: str | None) -> ReportSpec:
    """Return the spec of a kind of run."""
    kind = kind or DEFAULT_KIND
    if kind not in SPECS:
        raise InputError(
            f"there is no kind of run called {kind!r}, only {', '.join(SPECS)}; a plugin may be "
            "missing"
        )
    module, _, name = SPECS[kind].partition(":")
    return getattr(importlib.import_module(module), name)
