"""What a campaign is: arms, seeds, variants, evaluations and tuning, in any domain."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, Any

from prism_motor._checks import InputError, check_choice, check_name, show
from prism_motor._ranges import Checked, Count, Seeds, above
from prism_motor.domains import Domain, domain_of
from prism_motor.runs.configs import ConfigError, apply_overrides, flatten, from_dict, to_dict
from prism_motor.runs.layout import DEMOS, LOGS, TUNING_RUNS
from prism_motor.train.config import EvaluationConfig, check_unique

RESERVED = (TUNING_RUNS, LOGS, DEMOS)
"""Folders of a campaign that are not variants."""

MOST_SETTINGS = 10_000
"""How many settings the tuning of an arm may try."""


class CampaignError(ConfigError):
    """A campaign cannot be run as it is written, or not in this folder."""


@dataclass(frozen=True)
class Arm(Checked, section="arms"):
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
        super().__post_init__()
        if not self.arm:
            object.__setattr__(self, "arm", self.name)


@dataclass(frozen=True)
class Variant(Checked, section="variants"):
    """A named change to all arms, to repeat the comparison under other circumstances."""

    name: str
    """Its name in tables and folders."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of all its runs."""
    like: str | None = None
    """An earlier variant whose settings it starts from."""


@dataclass(frozen=True)
class FurtherEvaluation(Checked, section="evaluations"):
    """One more evaluation of the policies of some arms, after the one that all arms get."""

    arms: tuple[str, ...]
    """Names of the arms."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of the evaluation that differ from the campaign's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unique("evaluations.arms", self.arms)


@dataclass(frozen=True)
class Tuning(Checked, section="tuning"):
    """A sweep for every arm before the reported runs, on seeds that are never reported."""

    seeds: Seeds
    """Training seeds of the sweep."""
    sweep: dict[str, Any] = field(default_factory=dict)
    """Lists of values by dotted key; all combinations are tried. ``KEY.times`` multiplies."""
    fraction: Annotated[float, above(0, 1)] = 0.35
    """Length of a tuning run as a fraction of a reported one; schedules shrink with it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unique("tuning.seeds", self.seeds)


@dataclass(frozen=True, kw_only=True)
class Campaign(Checked, section="campaign"):
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
    seeds: Seeds
    """Training seeds in order: all arms train with the first before the second."""
    updates: Count | None = None
    """Updates per run; default: the preset's."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of all runs."""
    variants: tuple[Variant, ...] = ()
    """Circumstances under which all arms are compared; default: a single unnamed one."""
    preparation: Any = None
    """Settings of what must be prepared before training, if the domain needs anything."""
    evaluation: EvaluationConfig
    """How the policies are evaluated."""
    evaluations: tuple[FurtherEvaluation, ...] = ()
    """Further evaluations of some of the arms."""
    tuning: Tuning | None = None
    """The sweep before the reported runs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        domain = self.domain
        _check_folder("campaign", self.name)
        check_choice("preset", self.preset, domain.presets)
        if not self.arms:
            raise CampaignError("A campaign needs at least one arm ([[arms]]).")
        for arm in self.arms:
            _check_folder("arm", arm.name)
            check_choice("arm", domain.arm_name(arm.arm), domain.arms)
        # Compare current names, which the runs are labelled with; files may use former ones.
        check_unique("The arms' names", [self.label(arm) for arm in self.arms])
        check_unique("seeds", self.seeds)
        self._check_variants()
        self._check_evaluations()
        if self.tuning is not None:
            self._check_tuning(self.tuning)

    def _check_variants(self) -> None:
        earlier: list[str] = []
        for variant in self.variants:
            _check_folder("variant", variant.name)
            if variant.like is not None:
                check_choice(f"variant (before {variant.name!r})", variant.like, earlier)
            earlier.append(variant.name)
        if earlier:
            check_unique("The variants' names", earlier)

    def _check_evaluations(self) -> None:
        labels = [self.label(arm) for arm in self.arms]
        for further in self.evaluations:
            for name in further.arms:
                check_choice("arm of [[evaluations]]", self.domain.arm_name(name), labels)
        for arm in self.arms:
            protocols = self.protocols(arm)
            if len({json.dumps(to_dict(one)) for one in protocols}) < len(protocols):
                raise CampaignError(
                    f"[[evaluations]]: {arm.name} would be evaluated twice in the same way. Give "
                    "every evaluation overrides that differ, or remove one."
                )

    def _check_tuning(self, tuning: Tuning) -> None:
        evaluated = {seed for arm in self.arms for one in self.protocols(arm) for seed in one.seeds}
        for what, seeds in (("seeds", self.seeds), ("evaluation.seeds", evaluated)):
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

    def protocols(self, arm: Arm) -> tuple[EvaluationConfig, ...]:
        """Return all evaluations of an arm's policies: the one of all arms, then its own."""
        further = [
            one.overrides
            for one in self.evaluations
            if self.label(arm) in map(self.domain.arm_name, one.arms)
        ]
        try:
            return (self.evaluation, *(apply_overrides(self.evaluation, own) for own in further))
        except InputError as error:
            raise CampaignError(f"[[evaluations]] of {arm.name}: {error}") from error

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
    for key in ("arms", "variants", "tasks", "evaluations", "plugins"):
        inner = str if key == "plugins" else dict
        listed = data.get(key, [])
        if not isinstance(listed, list) or not all(isinstance(one, inner) for one in listed):
            raise CampaignError(f"{where}: {key} must be a list of {_LISTED[inner]}.")
    domain = domain_of(data)
    data = {"preset": domain.default_preset, **_by_present_names(data, domain)}
    given = data.get("evaluation", {})
    if isinstance(given, dict):  # what is not given is as the preset has it
        given = to_dict(domain.protocol(str(data["preset"]))) | given
    data["evaluation"] = from_dict(domain.evaluation, given, f"{where}: evaluation")
    data["variants"] = [
        one for variant in data.get("variants", []) for one in _expanded(variant, where)
    ]
    if domain.preparation is not None:
        given = data.get("preparation") or {}
        data["preparation"] = from_dict(domain.preparation, given, f"{where}: preparation")
    elif data.get("preparation"):
        raise CampaignError(f"{where}: {domain.name} has nothing to prepare; remove this section.")
    return from_dict(Campaign, data, where)


def _expanded(variant: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """Return one variant per combination of the values of ``each``, named after them."""
    variant = dict(variant)
    lists = flatten(variant.pop("each", {}))
    if not lists:
        return [variant]
    name = variant.get("name")
    for key, values in lists.items():
        if not isinstance(values, list) or not values:
            raise CampaignError(
                f"{where}: each.{key} of variant {show(name)} needs a list of values, got "
                f"{show(values)}."
            )
    found = []
    for values in product(*lists.values()):
        own = flatten(variant.get("overrides", {})) | dict(zip(lists, values, strict=True))
        found.append({**variant, "name": "-".join(map(str, [name, *values])), "overrides": own})
    return found


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
    if (number := math.prod(map(len, sweep.values()))) > MOST_SETTINGS:
        raise CampaignError(
            f"The sweep of {arm.name} has {number} settings; at most {MOST_SETTINGS} can be tried."
        )
    found = [dict(zip(sweep, values, strict=True)) for values in product(*sweep.values())]
    for setting in found:
        setting_name(setting)
    return found


def setting_name(setting: Mapping[str, Any]) -> str:
    """Return the name of a folder for a setting of a sweep; raise if its values cannot be one."""
    name = ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in setting.items())
    try:
        return check_name("tuning run", name, also="=,+[]' ", longest=200)
    except InputError as error:
        raise CampaignError(
            f"{error} A sweep needs values that can be part of a folder's name; make others "
            "separate arms."
        ) from error


def _check_folder(what: str, name: str) -> None:
    """Reject what cannot name a folder of a campaign."""
    try:
        check_name(what, name)
    except InputError as error:
        raise CampaignError(str(error)) from error
    if name in RESERVED:
        raise CampaignError(
            f"{name!r} cannot be the name of a {what}: a campaign has folders called "
            f"{', '.join(RESERVED)}."
        )
