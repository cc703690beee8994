"""What reports need to know about a domain: measures, conditions, names, how to read its records.

Reports are written once for all domains. Whatever differs between them is an attribute or a small
function of a :class:`ReportSpec`; a domain returns its own as ``Domain.reporting``.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from prism_motor._console import count, text_table
from prism_motor.runs.configs import flatten, to_dict
from prism_motor.statistics.claims import Measure
from prism_motor.statistics.intervals import wilson

if TYPE_CHECKING:
    from prism_motor.domains import Domain


EVALUATED_BY = "evaluated_by"
"""Entry of an evaluation's protocol that names the program, if it was not prism."""


MEAN = "mean of conditions"
"""What the mean over the conditions that a domain averages is called, beside them."""


@dataclass(frozen=True)
class Baseline:
    """Something that needs no policy and was measured in the same episodes."""

    title: str
    """What it is called in tables."""
    fields: Mapping[str, str]
    """Fields of an episode that hold its values, by the field of the measure."""


class Execution(NamedTuple):
    """How a trained policy was executed in an evaluation; different ways are never mixed."""

    added: str = ""
    """What changed its actions, e.g. a compliance controller; empty if nothing did."""
    setting: str = ""
    """How the robot was set up, if not as by default, e.g. ``Kp 50``."""

    def label(self, name: str) -> str:
        """Return the label of a policy that was executed this way."""
        text = f"{name} + {self.added}" if self.added else name
        return f"{text}, {self.setting}" if self.setting else text


class Place(NamedTuple):
    """The task that an episode was about, whatever else its policy can do."""

    family: str
    """Family of tasks, such as a suite; empty if there is none."""
    task: str
    """Name of the task."""


PLAIN = Execution()
"""A policy executed as it was trained."""


@dataclass(frozen=True)
class Quantity:
    """Something that training logs, drawn as a learning curve."""

    key: str
    """Name in metrics.jsonl."""
    title: str
    """Title in charts."""
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
    """Title in charts."""
    factor: float = 1.0
    """Factor from the recorded unit to the drawn one."""


UPDATES, MINUTES = Axis("update", "updates"), Axis("seconds", "minutes of training", 1 / 60)
"""The cost of learning in updates and in time."""


class ReportSpec:
    """Everything that a report needs to know about a domain; the defaults suit most domains.

    Args:
        domain: The domain.
    """

    references: Sequence[str]
    """Arms to compare with: the first one that a section has."""
    robust: Sequence[str]
    """Fields of the measures that are compared under every condition, the rate first."""
    run_measures: Sequence[str]
    """Fields of the measures that are listed for every training run."""
    of_successes: ClassVar[bool] = False
    """Whether measures are also given over only the successful episodes."""
    measures_note: ClassVar[str] = ""
    """A note about the measures, below the main table."""
    shows_episodes: ClassVar[bool] = False
    """Whether the main table shows the number of episodes per arm."""
    plain_title: str
    """Heading of the table of the plain condition."""
    other_conditions: ClassVar[str] = "other conditions"
    """What the other conditions are called collectively."""
    away: str
    """How the sentence about the other conditions begins."""
    iqm_over_conditions: ClassVar[bool] = False
    """Whether the interquartile mean over all conditions is shown."""
    curves: Sequence[Quantity]
    """Quantities of the learning curves."""
    axes: ClassVar[Sequence[Axis]] = (UPDATES, MINUTES)
    """Axes of the learning curves."""
    free: ClassVar[Sequence[str]] = (
        "seed", "updates", "threads", "device", "checkpoint_every", "keep_checkpoints", "plugins",
    )  # fmt: skip
    """Settings in which the runs of one arm may differ."""
    network: ClassVar[str] = ""
    """Setting that holds the network, in which arms differ."""
    usual: ClassVar[Mapping[str, Any]] = {}
    """Settings that an arm's label names whenever they differ from these values."""
    families: ClassVar[Mapping[str, str]] = {}
    """Titles of families of tasks, in the order of tables; others follow by name."""
    decisive_packages: ClassVar[Sequence[str]] = ()
    """Packages whose version changes what is trained: a comparison that mixes them is named."""
    versioned: ClassVar[Mapping[str, str]] = {}
    """Settings of the task, by dotted name, that are versions of something, and of what: runs that
    differ in them share tables, and are named."""
    baselines: ClassVar[Sequence[Baseline]] = ()
    """What needs no policy: rows of their own below the arms."""
    companions: ClassVar[Mapping[str, str]] = {}
    """Measures that never stand alone, with the measure that is shown in the same cell."""
    averaged: ClassVar[Sequence[str]] = ()
    """Conditions that are also averaged, for every seed that has all of them."""
    by_task: ClassVar[str] = ""
    """Field of the measure that is shown by task, where a policy does several; empty: none."""
    task_word: ClassVar[str] = "task"
    """What a task is called."""
    iqm_over_tasks: ClassVar[bool] = True
    """Whether the interquartile mean of the rate over tasks is shown."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.measures: Sequence[Measure] = domain.measures
        self.references = (domain.reference,)
        self.robust = (self.rate.field,)
        self.run_measures = [measure.field for measure in self.measures]
        self.plain_title = f"{self.plain.capitalize()} condition"
        self.away = f"Away from {self.plain}:"
        self.curves = (Quantity(domain.tuning_metric[0], domain.tuning_metric[0]),)

    @property
    def rate(self) -> Measure:
        """The measure that is a rate of episodes, in percent."""
        return self.measures[0]

    @property
    def conditions(self) -> Sequence[str]:
        """Names of all conditions, the plain one first."""
        return self.domain.conditions

    @property
    def plain(self) -> str:
        """Name of the plain condition."""
        return self.conditions[0]

    def measure(self, field: str) -> Measure:
        """Return a measure by field."""
        return next(measure for measure in self.measures if measure.field == field)

    def title(self, configs: Sequence[Any]) -> str:
        """Return the title of the task of some runs."""
        return self.domain.task_name(configs[0])

    def task_settings(self, config: Any) -> dict[str, Any]:
        """Return the settings of the task but versions; empty if its name says it all."""
        task = flatten(to_dict(config.task)) if hasattr(config, "task") else {}
        return {name: value for name, value in task.items() if name not in self.versioned}

    def task_key(self, config: Any) -> str:
        """Return what a run learned; runs that differ in it never share a table."""
        return json.dumps([self.domain.task_name(config), self.task_settings(config)])

    def group(self, config: Any) -> str:
        """Return the group of tasks that results are also averaged over; empty if there is none."""
        return ""

    def place(self, config: Any, episode: Mapping[str, Any]) -> Place:
        """Return which task of which family an episode was about.

        Args:
            config: The run that it evaluated, whose policy may know several tasks.
            episode: The episode as it is stored.
        """
        return Place("", self.domain.task_name(config))

    def parameters(self, config: Any) -> int | None:
        """Return the parameters of the policy network; ``None`` to show no such column."""
        return None

    def samples_per_update(self, config: Any) -> int | None:
        """Return the samples of one update; ``None`` if budgets are given in updates."""
        return None

    def caption(self, config: Any) -> str:
        """Return what a video of a run shows."""
        return f"{config.arm}, {config.preset}, seed {config.seed}"

    def execution(self, protocol: Mapping[str, Any]) -> Execution:
        """Return how the policy of an evaluation was executed."""
        return PLAIN

    def extent(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Summarise how much was evaluated."""
        return f"{count(len(episodes), 'episode')} each"

    def scope(self, protocol: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
        """Return what was evaluated; evaluations that differ in it are not comparable."""
        return self.extent(protocol, episodes)

    def portrait(self, found: Mapping[str, str]) -> str:
        """Describe how an arm behaves from its numbers, by field; may be empty."""
        return ""


def episode_table(spec: ReportSpec, found: Mapping[str, Sequence[Any]]) -> str:
    """Format the episodes of one policy as a table for a terminal, conditions side by side.

    Args:
        spec: What the domain says about reports.
        found: Episodes by condition.
    """
    rows = [["", *found], ["episodes", *(str(len(episodes)) for episodes in found.values())]]
    for measure in spec.domain.measures:
        name = f"{measure.title}, {measure.unit}" if measure.unit else measure.title
        if measure is spec.rate or not spec.of_successes:
            rows.append([name, *(_cell(spec, measure, episodes) for episodes in found.values())])
            continue
        # A policy that gives up early has small errors, so successes are also shown separately.
        for which, counts in (("all", lambda _: True), ("successful", spec.rate.value)):
            cells = [_cell(spec, measure, list(filter(counts, one))) for one in found.values()]
            rows.append([f"{name} ({which})", *cells])
    return (
        f"{text_table(rows)}\n\nMean ± SD over episodes, {spec.rate.title} with its 95 % Wilson "
        "interval. All episodes are of one trained\npolicy: none of this says how training seeds "
        "differ."
    )


def _cell(spec: ReportSpec, measure: Measure, episodes: Sequence[Any]) -> str:
    """Format the mean of a measure: a rate with its interval, others with their SD."""
    values = [v for episode in episodes if (v := measure.value(episode)) is not None]
    if not values:
        return "none"
    mean = measure.write(statistics.fmean(values))
    if measure is spec.rate:
        hits = sum(value > 0 for value in values)
        low, high = (measure.write(100 * bound) for bound in wilson(hits, len(values)))
        return f"{mean} [{low}, {high}]"
    return f"{mean} ± {measure.write(statistics.stdev(values))}" if values[1:] else mean
