"""Groups runs into sections that share tables, and into arms with several seeds.

Runs belong to the same section only if they learned the same task. Two runs are the same arm only
if all of their settings are equal, including the number of updates, except those that their domain
declares free.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism_motor._checks import InputError
from prism_motor._console import count
from prism_motor.arms import arm_order
from prism_motor.domains import DOMAINS, Domain
from prism_motor.report.collect import CampaignPlan, RunCollection, RunRecord
from prism_motor.reporting import PLAIN, Execution, ReportSpec
from prism_motor.runs.configs import find_differences, flatten, to_dict

_SHOWN = 3
"""Largest number of differing settings in a label."""


@dataclass(frozen=True)
class ArmRuns:
    """Runs that differ only in their seed."""

    name: str
    """Name of the arm, as in its runs."""
    label: str
    """Label that is unique in its section."""
    settings: Mapping[str, Any]
    """Its settings without the free ones, including the number of updates."""
    parameters: int | None
    """Parameters of the policy network; ``None`` if unknown."""
    runs: Mapping[int, RunRecord]
    """Runs by training seed."""
    planned: tuple[int, ...]
    """Training seeds it should have."""

    @property
    def finished(self) -> dict[int, RunRecord]:
        """Runs with all their updates, by training seed."""
        return {seed: run for seed, run in self.runs.items() if run.finished}

    @property
    def executions(self) -> list[Execution]:
        """How its finished policies were executed; plain if they were not evaluated."""
        found = {one.execution for run in self.finished.values() for one in run.evaluations}
        return sorted(found) or [PLAIN]

    def missing(self, condition: str, execution: Execution = PLAIN) -> list[int]:
        """Return the planned seeds without a finished training or an evaluation."""
        return [
            seed
            for seed in self.planned
            if seed not in self.finished or not self.runs[seed].episodes(condition, execution)
        ]


@dataclass(frozen=True)
class ReportSection:
    """Arms that were trained on the same task."""

    domain: Domain
    """Domain of the task."""
    title: str
    """Name of the task."""
    arms: tuple[ArmRuns, ...]
    """All arms, known ones first, including planned arms without runs."""
    notes: tuple[str, ...]
    """What was left out, and why."""

    @property
    def spec(self) -> ReportSpec:
        """The domain's report settings."""
        return self.domain.reporting

    @property
    def runs(self) -> list[RunRecord]:
        """All runs."""
        return [run for arm in self.arms for run in arm.runs.values()]

    def reference(self, name: str | None = None, among: Iterable[ArmRuns] | None = None) -> str:
        """Return the name of the arm to compare with.

        It is the requested one if there is such an arm, else the first existing one of the domain's
        references, else the missing name.

        Args:
            name: The requested arm.
            among: Arms to choose from; default: all.
        """
        names = {arm.name for arm in (self.arms if among is None else among) if arm.runs}
        wanted = [*([self.domain.arm_name(name)] if name else []), *self.spec.references]
        return next((one for one in wanted if one in names), wanted[0])

    def reference_of(self, arm: ArmRuns, name: str) -> ArmRuns | None:
        """Return the arm of that name with as many updates and the most similar other settings.

        The network does not count, because it is what is compared.
        """
        if not arm.runs or arm.name == name:
            return None
        others = [one for one in self.arms if one.name == name and one.runs]
        equal = [one for one in others if one.settings["updates"] == arm.settings["updates"]]
        return min(equal, key=lambda one: self._distance(arm, one), default=None)

    def _distance(self, arm: ArmRuns, other: ArmRuns) -> tuple[int, int]:
        """Return how many settings of two arms differ, without the network, and the size gap."""
        one, two = ({**a.settings, "arm": "", self.spec.network: {}} for a in (arm, other))
        return len(find_differences(one, two)), abs((arm.parameters or 0) - (other.parameters or 0))


def make_sections(collection: RunCollection) -> list[ReportSection]:
    """Sort the runs of a collection into sections and arms, domain by domain."""
    tasks: dict[tuple[str, str, str], list[RunRecord]] = {}
    for run in collection.runs:
        spec = run.spec
        key = run.domain.name, spec.group(run.config), spec.task_key(run.config)
        tasks.setdefault(key, []).append(run)
    kinds = list(DOMAINS)
    groups = [tasks[key] for key in sorted(tasks, key=lambda key: (kinds.index(key[0]), key[1]))]
    titles = distinct_labels(
        [group[0].spec.title([run.config for run in group]) for group in groups],
        [group[0].spec.task_settings(group[0].config) for group in groups],
    )
    return [
        _make_section(title, group, _planned(collection.plans, group))
        for title, group in zip(titles, groups, strict=True)
    ]


def _planned(plans: Sequence[CampaignPlan], runs: Sequence[RunRecord]) -> dict[str, set[int]]:
    """Return the planned seeds of each arm, for campaigns that the runs belong to."""
    wanted: dict[str, set[int]] = {}
    for plan in plans:
        if any(plan.covers(run) for run in runs):
            for name, seeds in plan.seeds.items():
                wanted.setdefault(name, set()).update(seeds)
    return wanted


def _make_section(
    title: str, runs: Sequence[RunRecord], planned: Mapping[str, set[int]]
) -> ReportSection:
    domain = runs[0].domain
    groups: dict[str, dict[int, RunRecord]] = {}
    settings: dict[str, dict[str, Any]] = {}
    notes = []
    # Runs with equal settings form an arm; of runs with the same seed, the furthest counts.
    for run in sorted(runs, key=lambda r: (-r.updates, -len(r.evaluations), r.name)):
        own = _identity(run)
        key = json.dumps(own)
        settings[key] = own
        first = groups.setdefault(key, {}).setdefault(run.config.seed, run)
        if first is not run:
            notes.append(
                f"{run.name} is left out: {first.name} is the same arm with the same seed."
            )
    # Make labels unique by the settings in which arms of the same name differ.
    keys = list(groups)
    names = [settings[key]["arm"] for key in keys]
    others = [_without(settings[key], ("task", "arm", "updates")) for key in keys]
    labels = distinct_labels(_with_updates(settings), others, domain.reporting.usual)
    # Every arm should have all seeds of any arm, and those of its campaign.
    everyone = {seed for group in groups.values() for seed in group}
    arms = []
    for key, name, label in zip(keys, names, labels, strict=True):
        ordered = {seed: groups[key][seed] for seed in sorted(groups[key])}
        seeds = tuple(sorted(everyone | planned.get(name, set())))
        parameters = _parameters(next(iter(ordered.values())), notes)
        arms.append(ArmRuns(name, label, settings[key], parameters, ordered, seeds))
    absent = planned.keys() - {*names}
    arms += [ArmRuns(name, name, {}, None, {}, tuple(sorted(planned[name]))) for name in absent]
    arms.sort(key=_place)
    notes += [*_not_alike(title, arms), *_mixed_versions(title, arms)]
    return ReportSection(domain, title, tuple(arms), tuple(notes))


def _not_alike(title: str, arms: Sequence[ArmRuns]) -> list[str]:
    """Name the conditions under which finished runs were not evaluated alike."""
    found: dict[str, set[str]] = {}
    for run in (run for arm in arms for run in arm.finished.values()):
        scopes: dict[str, list[str]] = {}
        for one in sorted(run.evaluations, key=lambda one: one.seed):
            scope = run.spec.scope(one.protocol, one.episodes)
            where = one.execution.label(one.condition)
            scopes.setdefault(where, []).append(f"seed {one.seed}: {scope}")
        for where, listed in scopes.items():
            found.setdefault(where, set()).add(", ".join(listed))
    return [
        f"{title}, {where}: runs were not evaluated alike, but with "
        f"{'; or with '.join(sorted(ways))}."
        for where, ways in found.items()
        if len(ways) > 1
    ]


def _mixed_versions(title: str, arms: Sequence[ArmRuns]) -> list[str]:
    """Name the packages and settings of which finished runs were trained with several versions."""
    finished = [run for arm in arms for run in arm.finished.values()]
    notes = []
    for what, version_of in _versions(finished[0].spec).items() if finished else ():
        used: dict[str, list[str]] = {}
        for run in finished:
            used.setdefault(version_of(run), []).append(run.name)
        if len(used) > 1:
            listed = "; ".join(
                f"{version}: {', '.join(sorted(used[version]))}" for version in sorted(used)
            )
            notes.append(f"{title}: trained with several versions of {what} ({listed}).")
    return notes


def _versions(spec: ReportSpec) -> dict[str, Callable[[RunRecord], str]]:
    """Return how to read the version of everything whose version changes what is trained."""

    def package(name: str) -> Callable[[RunRecord], str]:
        return lambda run: (run.provenance.get("packages") or {}).get(name) or "an unknown version"

    def setting(name: str) -> Callable[[RunRecord], str]:
        return lambda run: str(flatten(to_dict(run.config.task))[name])

    packages = {name: package(name) for name in spec.decisive_packages}
    return packages | {what: setting(name) for name, what in spec.versioned.items()}


def _identity(run: RunRecord) -> dict[str, Any]:
    return {**_without(run.settings, run.spec.free), "updates": run.budget}


def _without(settings: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in keys}


def _with_updates(settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the arms, with their updates where these differ."""
    budgets = {own["updates"] for own in settings.values()}
    if len(budgets) == 1:
        return [own["arm"] for own in settings.values()]
    return [f"{own['arm']}, {count(own['updates'], 'update')}" for own in settings.values()]


def _place(arm: ArmRuns) -> tuple[Any, ...]:
    updates = arm.settings.get("updates", 0)
    return (*arm_order(arm.name), updates, arm.parameters or 0, arm.label)


def _parameters(run: RunRecord, notes: list[str]) -> int | None:
    """Return the size of a run's network; if it cannot be determined, add a note."""
    try:
        return run.spec.parameters(run.config)
    except InputError as error:
        notes.append(f"{run.name}: its parameters cannot be counted: {error}")
        return None


def distinct_labels(
    names: Sequence[str],
    settings: Sequence[Mapping[str, Any]],
    usual: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return unique labels: equal names get the settings in which they differ.

    Args:
        names: One name per item.
        settings: Nested settings per item.
        usual: Usual settings by dotted key; other values are always shown.
    """
    flat = [flatten(one) for one in settings]
    labels = []
    for name, own in zip(names, flat, strict=True):
        same = [other for other_name, other in zip(names, flat, strict=True) if other_name == name]
        keys = [key for key in own if any(other.get(key) != own[key] for other in same)]
        for key, value in (usual or {}).items():
            said = f"{key.rpartition('.')[2]}{own.get(key)}" in name
            if own.get(key, value) != value and key not in keys and not said:
                keys.insert(0, key)
        shown = [f"{key.rpartition('.')[2]} {_short(own[key])}" for key in keys[:_SHOWN]]
        shown += [f"{len(keys) - _SHOWN} more"] if len(keys) > _SHOWN else []
        labels.append(f"{name}, {', '.join(shown)}" if shown else name)
    seen: Counter[str] = Counter()
    for index, label in enumerate(labels):
        seen[label] += 1
        labels[index] = f"{label} #{seen[label]}" if seen[label] > 1 else label
    return labels


def _short(value: Any) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        return "-".join(_short(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
