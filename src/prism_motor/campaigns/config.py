"""What a campaign of walking policies is: arms, seeds, variants, evaluations, tuning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.evaluation import Protocol
from prism_motor.locomotion.presets import ARMS, PRESETS
from prism_motor.nn.checks import check_choice, check_size
from prism_motor.runs.configs import ConfigError, flatten

RESERVED = ("tuning", "logs", "demos")
"""Folders of a campaign that are no variants."""


class CampaignError(ConfigError):
    """A campaign cannot be run as it is written, or not in this folder."""


@dataclass(frozen=True)
class Arm:
    """One of the things that are compared."""

    name: str
    """What tables and folders call it."""
    actor: str
    """Kind of policy network: mlp, mlp-larger, gated, residual."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of this arm alone."""
    sweep: dict[str, Any] | None = None
    """Settings that its tuning tries, instead of the campaign's; as many combinations."""


@dataclass(frozen=True)
class Variant:
    """A named change of all arms, to ask the same question under other circumstances."""

    name: str
    """What tables and folders call it."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of all its runs."""
    like: str | None = None
    """An earlier variant whose settings it starts from."""


@dataclass(frozen=True)
class Evaluation:
    """How the trained policies are evaluated."""

    conditions: tuple[str, ...] = ("nominal",)
    """Names of conditions."""
    seeds: tuple[int, ...] = (101, 102, 103)
    """Evaluation seeds."""
    envs: int = 100
    """Environments per seed."""
    episodes: int = 2
    """Episodes of each environment, the first ones."""

    def __post_init__(self) -> None:
        for condition in self.conditions:
            find_condition(condition)
        check_unique("evaluation.conditions", self.conditions)
        check_seeds("evaluation.seeds", self.seeds)
        self.protocol()

    def protocol(self) -> Protocol:
        """Return the size of an evaluation."""
        return Protocol(self.envs, self.episodes)


@dataclass(frozen=True)
class Tuning:
    """A sweep that every arm gets before its reported runs, on seeds that are never reported."""

    seeds: tuple[int, ...]
    """Training seeds of the sweep."""
    sweep: dict[str, Any] = field(default_factory=dict)
    """Lists of values by dotted key; all combinations are tried. ``KEY.times`` multiplies."""
    fraction: float = 0.35
    """Length of a tuning run, as a fraction of a reported one; the rate's decay shrinks with it."""

    def __post_init__(self) -> None:
        check_seeds("tuning.seeds", self.seeds)
        if not 0 < self.fraction <= 1:
            raise CampaignError(
                f"tuning.fraction must be above 0 and at most 1, got {self.fraction}."
            )


@dataclass(frozen=True)
class Campaign:
    """Everything that a campaign file says."""

    name: str
    """What it is called; its folder is NAME-PRESET."""
    arms: tuple[Arm, ...]
    """What is compared, in the order of the tables."""
    seeds: tuple[int, ...]
    """Training seeds, most wanted first: all arms train with the first before the second."""
    preset: str = "laptop"
    """Task and learner that overrides start from."""
    description: str = ""
    """What it asks, for people."""
    iterations: int | None = None
    """Policy updates of a run; default: the preset's."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of all runs."""
    variants: tuple[Variant, ...] = ()
    """Circumstances under which all arms are compared; default: one, without a name."""
    evaluation: Evaluation = field(default_factory=Evaluation)
    """How the policies are evaluated."""
    tuning: Tuning | None = None
    """The sweep before the reported runs."""
    kind: str = "locomotion"
    """Tells it from campaigns of policies that learn from demonstrations."""

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        for what, group in (("arm", self.arms), ("variant", self.variants)):
            for one in group:
                check_name(what, one.name)
            check_unique(f"The {what}s' names", [one.name for one in group])
        check_name("campaign", self.name)
        earlier: list[str] = []
        for variant in self.variants:
            if variant.like is not None:
                check_choice(f"variant (before {variant.name!r})", variant.like, earlier)
            earlier.append(variant.name)
        if not self.arms:
            raise CampaignError("A campaign needs at least one arm ([[arms]]).")
        for arm in self.arms:
            check_choice("actor", arm.actor, ARMS)
        check_seeds("seeds", self.seeds)
        if self.iterations is not None:
            check_size("campaign", "iterations", self.iterations)
        if self.tuning is not None:
            self._check_tuning(self.tuning)

    def _check_tuning(self, tuning: Tuning) -> None:
        for what, seeds in (("seeds", self.seeds), ("evaluation.seeds", self.evaluation.seeds)):
            if shared := sorted({*tuning.seeds} & {*seeds}):
                raise CampaignError(
                    f"tuning.seeds and {what} share {shared}: what is tuned on must not be "
                    "reported. Choose other tuning seeds."
                )
        counts = {arm.name: len(combinations(self, arm)) for arm in self.arms}
        if len({*counts.values()}) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise CampaignError(
                f"Every arm must get the same number of tuning runs, but the sweeps have {listed} "
                "settings. Give the arms with fewer settings more values, e.g. learning rates."
            )

    def variant_overrides(self, variant: Variant) -> dict[str, Any]:
        """Return the settings of a variant by dotted key, with those of the one it is like."""
        base = next((one for one in self.variants if one.name == variant.like), None)
        start = {} if base is None else self.variant_overrides(base)
        return {**start, **flatten(variant.overrides)}


def combinations(campaign: Campaign, arm: Arm) -> list[dict[str, Any]]:
    """Return all settings that the tuning of an arm tries, as written in the file."""
    assert campaign.tuning is not None
    sweep = flatten(campaign.tuning.sweep if arm.sweep is None else arm.sweep)
    if not sweep:
        raise CampaignError(f"The tuning of {arm.name} has nothing to sweep: give tuning.sweep.")
    for key, values in sweep.items():
        if not isinstance(values, list) or not values:
            raise CampaignError(
                f"The sweep of {arm.name}: {key} needs a list of values, got {values!r}."
            )
        check_unique(f"The sweep of {arm.name}, {key},", values)
    return [dict(zip(sweep, values, strict=True)) for values in product(*sweep.values())]


def check_name(what: str, name: str) -> None:
    """Refuse what cannot name a folder of a campaign."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or name in RESERVED:
        raise CampaignError(
            f"{name!r} cannot be the name of a {what}: it names a folder. Use letters, digits, "
            f"'.', '_' and '-', and none of {', '.join(RESERVED)}."
        )


def check_seeds(what: str, seeds: tuple[int, ...]) -> None:
    """Refuse seeds that are negative or there twice."""
    check_unique(what, seeds)
    if any(seed < 0 for seed in seeds):
        raise CampaignError(f"{what} must not be negative, got {list(seeds)}.")


def check_unique(what: str, values: Sequence[Any]) -> None:
    """Refuse values that are there twice."""
    if len(values) > len({str(value) for value in values}):
        twice = [value for value, count in Counter(map(str, values)).items() if count > 1]
        raise CampaignError(f"{what} must differ; twice: {', '.join(twice)}.")
