"""What a campaign is: arms, seeds, variants, evaluations and tuning, in any domain."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from prism_motor._checks import check_choice, check_size
from prism_motor.domains import Domain, domain_of
from prism_motor.runs.configs import ConfigError, flatten, from_dict
from prism_motor.runs.layout import DEMOS, LOGS, TUNING_RUNS
from prism_motor.train.config import EvaluationConfig, check_seeds, check_unique

RESERVED = (TUNING_RUNS, LOGS, DEMOS)
"""Folders of a campaign that are not variants."""


class CampaignError(ConfigError):
    """A campaign cannot be run as it is written, or not in this folder."""


@dataclass(frozen=True)
class Arm:
    """One side of the comparison."""

    name: str
    """Its name in tables and folders."""
    arm: str = ""
    """The domain's arm; default: the one of that name."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of this arm only."""
    sweep: dict[str, Any] | None = None
    """Tuning sweep that replaces the campaign's; must have as many combinations."""

    def __post_init__(self) -> None:
        if not self.arm:
            object.__setattr__(self, "arm", self.name)


@dataclass(frozen=True)
class Variant:
    """A named change to all arms, to repeat the comparison under other circumstances."""

    name: str
    """Its name in tables and folders."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of all its runs."""
    like: str | None = None
    """An earlier variant whose settings it starts from."""


@dataclass(frozen=True)
class Tuning:
    """A sweep for every arm before the reported runs, on seeds that are never reported."""

    seeds: tuple[int, ...]
    """Training seeds of the sweep."""
    sweep: dict[str, Any] = field(default_factory=dict)
    """Lists of values by dotted key; all combinations are tried. ``KEY.times`` multiplies."""
    fraction: float = 0.35
    """Length of a tuning run as a fraction of a reported one; schedules shrink with it."""

    def __post_init__(self) -> None:
        check_seeds("tuning.seeds", self.seeds)
        if not 0 < self.fraction <= 1:
            raise CampaignError(
                f"tuning.fraction must be above 0 and at most 1, got {self.fraction}."
            )


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """The contents of a campaign file."""

    kind: str = "locomotion"
    """Name of the domain."""
    name: str
    """Name of the campaign; its folder is NAME-PRESET."""
    preset: str
    """Preset of the domain that overrides start from."""
    description: str = ""
    """The question it answers, for readers."""
    plugins: tuple[str, ...] = ()
    """User modules that its runs need."""
    arms: tuple[Arm, ...]
    """What is compared, in the order of the tables."""
    seeds: tuple[int, ...]
    """Training seeds in order: all arms train with the first before the second."""
    updates: int | None = None
    """Updates per run; default: the preset's."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of all runs."""
    variants: tuple[Variant, ...] = ()
    """Circumstances under which all arms are compared; default: a single unnamed one."""
    preparation: Any = None
    """Settings of what must be prepared before training, if the domain needs anything."""
    evaluation: EvaluationConfig
    """How the policies are evaluated."""
    tuning: Tuning | None = None
    """The sweep before the reported runs."""

    def __post_init__(self) -> None:
        domain = self.domain
        check_name("campaign", self.name)
        check_choice("preset", self.preset, domain.presets)
        if not self.arms:
            raise CampaignError("A campaign needs at least one arm ([[arms]]).")
        for arm in self.arms:
            check_name("arm", arm.name)
            check_choice("arm", domain.arm_name(arm.arm), domain.arms)
        # Compare current names, which the runs are labelled with; files may use former ones.
        check_unique("The arms' names", [self.label(arm) for arm in self.arms])
        check_seeds("seeds", self.seeds)
        if self.updates is not None:
            check_size("campaign", "updates", self.updates)
        self._check_variants()
        if self.tuning is not None:
            self._check_tuning(self.tuning)

    def _check_variants(self) -> None:
        earlier: list[str] = []
        for variant in self.variants:
            check_name("variant", variant.name)
            if variant.like is not None:
                check_choice(f"variant (before {variant.name!r})", variant.like, earlier)
            earlier.append(variant.name)
        if earlier:
            check_unique("The variants' names", earlier)

    def _check_tuning(self, tuning: Tuning) -> None:
        for what, seeds in (("seeds", self.seeds), ("evaluation.seeds", self.evaluation.seeds)):
            if shared := sorted({*tuning.seeds} & {*seeds}):
                raise CampaignError(
                    f"tuning.seeds and {what} share {shared}: seeds used for tuning must not be "
                    "reported. Choose other tuning seeds."
                )
        counts = {arm.name: len(combinations(self, arm)) for arm in self.arms}
        if len({*counts.values()}) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise CampaignError(
                f"Every arm must get the same number of tuning runs, but the sweeps have {listed} "
                "settings. Give the arms with fewer settings more values, e.g. learning rates."
            )

    @property
    def domain(self) -> Domain:
        """The domain of all its runs."""
        return domain_of({"kind": self.kind, "plugins": self.plugins})

    def label(self, arm: Arm) -> str:
        """Return the label of an arm's runs."""
        return self.domain.arm_name(arm.name)

    def variant_overrides(self, variant: Variant) -> dict[str, Any]:
        """Return the settings of a variant by dotted key, including those it starts from."""
        base = next((one for one in self.variants if one.name == variant.like), None)
        start = {} if base is None else self.variant_overrides(base)
        return {**start, **flatten(variant.overrides)}


def read_campaign(data: dict[str, Any], where: str) -> Campaign:
    """Read a campaign from plain data, with the domain's defaults.

    Args:
        data: Contents of the file, with current or former names.
        where: The file, for error messages.
    """
    if not isinstance(data, dict):
        raise CampaignError(f"{where}: expected a table of settings, got {type(data).__name__}.")
    for key in ("arms", "variants", "tasks", "plugins"):
        inner = str if key == "plugins" else dict
        listed = data.get(key, [])
        if not isinstance(listed, list) or not all(isinstance(one, inner) for one in listed):
            raise CampaignError(f"{where}: {key} must be a list of {_LISTED[inner]}.")
    domain = domain_of(data)
    data = {"preset": domain.default_preset, **_by_present_names(data, domain)}
    data["evaluation"] = from_dict(
        domain.evaluation, data.get("evaluation", {}), f"{where}: evaluation"
    )
    if domain.preparation is not None:
        given = data.get("preparation") or {}
        data["preparation"] = from_dict(domain.preparation, given, f"{where}: preparation")
    elif data.get("preparation"):
        raise CampaignError(f"{where}: {domain.name} has nothing to prepare; remove this section.")
    return from_dict(Campaign, data, where)


_LISTED = {str: "names", dict: "tables"}


def _by_present_names(data: dict[str, Any], domain: Domain) -> dict[str, Any]:
    """Replace the names that earlier versions used."""

    def upgraded(table: dict[str, Any]) -> dict[str, Any]:
        """Update a table that has overrides and may be an arm."""
        table = dict(table)
        if isinstance(table.get("overrides"), dict):
            table["overrides"] = domain.upgrade(table["overrides"])
        for key in ("actor", "conditioner"):
            if key in table and "arm" not in table:
                table["arm"] = domain.arm_name(str(table.pop(key)))
        return table

    data = upgraded(data)
    if "iterations" in data:
        data["updates"] = data.pop("iterations")
    for key in ("arms", "variants", "tasks"):
        if key in data:
            data[key] = [upgraded(one) for one in data[key]]
    return domain.upgrade_campaign(data)


def combinations(campaign: Campaign, arm: Arm) -> list[dict[str, Any]]:
    """Return all settings that the tuning of an arm tries, as written in the file."""
    assert campaign.tuning is not None
    sweep = flatten(campaign.tuning.sweep if arm.sweep is None else arm.sweep)
    if not sweep:
        raise CampaignError(f"The tuning of {arm.name} has nothing to sweep: give tuning.sweep.")
    for key, values in sweep.items():
        if key.removesuffix(".times") == "updates":
            raise CampaignError(
                f"The sweep of {arm.name}: updates cannot be swept, they are the same for all."
            )
        if not isinstance(values, list) or not values:
            raise CampaignError(
                f"The sweep of {arm.name}: {key} needs a list of values, got {values!r}."
            )
        check_unique(f"The sweep of {arm.name}, {key},", values)
        for value in values:
            _check_value(f"The sweep of {arm.name}: {key}", value)
    return [dict(zip(sweep, values, strict=True)) for values in product(*sweep.values())]


def check_name(what: str, name: str) -> None:
    """Reject what cannot name a folder of a campaign."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or name in RESERVED:
        raise CampaignError(
            f"{name!r} cannot be the name of a {what}: it names a folder. Use letters, digits, "
            f"'.', '_' and '-', and none of {', '.join(RESERVED)}."
        )


def _check_value(where: str, value: Any) -> None:
    """Reject a sweep value that cannot be part of a folder's name."""
    if not re.fullmatch(r"[A-Za-z0-9._+\-,\[\]' ]{1,80}", str(value)):
        raise CampaignError(
            f"{where} has the value {value!r}, which cannot be part of a folder's name. Use values "
            "of letters, digits, '.', '_' and '-'; make others separate arms."
        )
