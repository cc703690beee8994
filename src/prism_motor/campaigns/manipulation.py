"""What a campaign of policies is that learn from demonstrations: tasks, arms, seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from prism_motor._errors import InputError
from prism_motor.campaigns.config import CampaignError, check_name, check_seeds, check_unique
from prism_motor.manipulation.config import KIND
from prism_motor.manipulation.presets import CONDITIONERS, PRESETS
from prism_motor.manipulation.rollout import find_perturbation
from prism_motor.manipulation.tasks import SUITES
from prism_motor.nn.checks import check_choice, check_size


@dataclass(frozen=True)
class ImitationArm:
    """One of the things that are compared."""

    name: str
    """What tables and folders call it."""
    conditioner: str
    """What the state history passes: linear, mlp or prism."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of this arm alone."""


@dataclass(frozen=True)
class TaskEntry:
    """A task on which all arms are compared."""

    name: str
    """What tables and folders call it."""
    suite: str
    """The benchmark."""
    task: str
    """Name or number in it."""
    demos: str | None = None
    """Demonstrations that are there already, a folder or a name on the hub; default: the campaign
    records them."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of all its runs."""


@dataclass(frozen=True)
class DemonstrationsEntry:
    """What the scripted experts record, once a task."""

    episodes: int = 50
    """Demonstrations of every task."""
    seed: int = 1
    """Seed of resets and noise."""
    noise: float = 0.0
    """Standard deviation of noise on the hand's actions as they are executed."""

    def __post_init__(self) -> None:
        check_size("demonstrations", "episodes", self.episodes)
        if not 0 <= self.noise < math.inf:
            raise InputError(f"demonstrations.noise must be 0 or more, got {self.noise}.")


@dataclass(frozen=True)
class ImitationEvaluation:
    """How the trained policies are evaluated."""

    conditions: tuple[str, ...] = ("none",)
    """Names of perturbations."""
    seeds: tuple[int, ...] = (101,)
    """Evaluation seeds."""
    episodes: int = 50
    """Fixed initial states, the first ones."""
    stiffness: float | None = None
    """Kp of the arm's controller, for every arm; default: the suite's own."""

    def __post_init__(self) -> None:
        for condition in self.conditions:
            find_perturbation(condition)
        check_unique("evaluation.conditions", self.conditions)
        check_seeds("evaluation.seeds", self.seeds)
        check_size("evaluation", "episodes", self.episodes)


@dataclass(frozen=True)
class ManipulationCampaign:
    """Everything that the file of such a campaign says."""

    name: str
    """What it is called; its folder is NAME-PRESET."""
    arms: tuple[ImitationArm, ...]
    """What is compared, in the order of the tables."""
    tasks: tuple[TaskEntry, ...]
    """What on."""
    seeds: tuple[int, ...]
    """Training seeds, most wanted first: all tasks and arms train with the first before the
    second."""
    preset: str = "state"
    """Network and learner that overrides start from."""
    description: str = ""
    """What it asks, for people."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of all runs."""
    demonstrations: DemonstrationsEntry = field(default_factory=DemonstrationsEntry)
    """What all arms learn from."""
    evaluation: ImitationEvaluation = field(default_factory=ImitationEvaluation)
    """How the policies are evaluated."""
    kind: str = KIND
    """Tells it from campaigns of walking policies."""

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_name("campaign", self.name)
        for what, group in (("arm", self.arms), ("task", self.tasks)):
            if not group:
                raise CampaignError(f"A campaign needs at least one {what} ([[{what}s]]).")
            for one in group:
                check_name(what, one.name)
            check_unique(f"The {what}s' names", [one.name for one in group])
        for arm in self.arms:
            check_choice("conditioner", arm.conditioner, CONDITIONERS)
        for task in self.tasks:
            check_choice("suite", task.suite, SUITES)
        check_seeds("seeds", self.seeds)

    @property
    def variants(self) -> tuple[TaskEntry, ...]:
        """Tasks are to these campaigns what variants are to others."""
        return self.tasks
