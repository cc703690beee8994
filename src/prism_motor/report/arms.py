"""Which runs may share a table, and which of them are seeds of the same arm.

Runs belong to the same section only if they were trained on the same task. Two runs are the same
arm only if all of their settings are equal but :data:`FREE`; a run's number of updates counts too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism_motor.locomotion.presets import ARMS, observation_size
from prism_motor.nn import build_actor, count_parameters
from prism_motor.report.records import Collection, Plan, RunRecord
from prism_motor.runs import to_dict
from prism_motor.runs.configs import find_differences, flatten

FREE = ("seed", "threads", "iterations", "checkpoint_every", "keep_checkpoints")
"""Settings in which the runs of an arm may differ."""

REFERENCE = "mlp-larger"
"""Arm that others are compared with: the plain MLP of equal size."""

_SHOWN = 3
"""How many differing settings a name lists."""


@dataclass(frozen=True)
class Arm:
    """Trainings that differ in their seed alone."""

    name: str
    """Name of the arm, as in its runs."""
    label: str
    """Name that is unique in its section."""
    settings: Mapping[str, Any]
    """Its settings without :data:`FREE`, with the number of updates."""
    parameters: int | None
    """Parameters of the policy network; ``None`` without any run."""
    runs: Mapping[int, RunRecord]
    """Runs by training seed."""
    planned: tuple[int, ...]
    """Training seeds that it should have."""

    @property
    def finished(self) -> dict[int, RunRecord]:
        """Runs with all their updates, by training seed."""
        return {seed: run for seed, run in self.runs.items() if run.finished}

    def missing(self, condition: str) -> list[int]:
        """Return the planned seeds without a finished training or an evaluation."""
        return [
            seed
            for seed in self.planned
            if seed not in self.finished or not self.runs[seed].episodes(condition)
        ]


@dataclass(frozen=True)
class Section:
    """Arms that were trained on the same task."""

    title: str
    """Name of the task."""
    arms: tuple[Arm, ...]
    """All arms, known ones first; those of a campaign that have no run yet too."""
    notes: tuple[str, ...]
    """What was left out, and why."""

    @property
    def runs(self) -> list[RunRecord]:
        """All runs."""
        return [run for arm in self.arms for run in arm.runs.values()]

    def reference_of(self, arm: Arm, name: str) -> Arm | None:
        """Return the arm of a name with as many updates whose other settings are nearest.

        The network does not count: it is what is compared.
        """
        if not arm.runs or arm.name == name:
            return None
        others = [one for one in self.arms if one.name == name and one.runs]
        equal = [one for one in others if one.settings["updates"] == arm.settings["updates"]]
        return min(equal, key=lambda one: _distance(arm, one), default=None)


def make_sections(collection: Collection) -> list[Section]:
    """Sort the runs of a collection into sections and arms."""
    tasks: dict[str, list[RunRecord]] = {}
    for run in collection.runs:
        tasks.setdefault(json.dumps(to_dict(run.config.task)), []).append(run)
    groups = list(tasks.values())
    settings = [to_dict(group[0].config.task) for group in groups]
    titles = tell_apart([_presets(group) for group in groups], settings)
    return [
        _make_section(title, group, _planned(collection.plans, group))
        for title, group in zip(titles, groups, strict=True)
    ]


def _planned(plans: Sequence[Plan], runs: Sequence[RunRecord]) -> dict[str, set[int]]:
    """Return the seeds that campaigns want of each arm, for campaigns that some runs are of."""
    wanted: dict[str, set[int]] = {}
    for plan in plans:
        if any(plan.covers(run) for run in runs):
            for name, seeds in plan.seeds.items():
                wanted.setdefault(name, set()).update(seeds)
    return wanted


def _presets(runs: Sequence[RunRecord]) -> str:
    names = sorted({run.config.preset for run in runs})
    return f"{' and '.join(names)} ({runs[0].config.task.robot})"


def _make_section(
    title: str, runs: Sequence[RunRecord], planned: Mapping[str, set[int]]
) -> Section:
    groups: dict[str, dict[int, RunRecord]] = {}
    settings: dict[str, dict[str, Any]] = {}
    notes = []
    # The run that got furthest stands for its seed.
    for run in sorted(runs, key=lambda r: (-r.updates, -len(r.evaluations), r.name)):
        own = _identity(run)
        key = json.dumps(own)
        settings[key] = own
        first = groups.setdefault(key, {}).setdefault(run.config.seed, run)
        if first is not run:
            notes.append(
                f"{run.name} is left out: {first.name} is the same arm with the same seed."
            )
    keys = list(groups)
    names = [settings[key]["arm"] for key in keys]
    labels = tell_apart(_with_updates(settings), [_told(settings[key]) for key in keys])
    everyone = {seed for group in groups.values() for seed in group}
    arms = []
    for key, name, label in zip(keys, names, labels, strict=True):
        ordered = {seed: groups[key][seed] for seed in sorted(groups[key])}
        seeds = tuple(sorted(everyone | planned.get(name, set())))
        parameters = _count(next(iter(ordered.values())))
        arms.append(Arm(name, label, settings[key], parameters, ordered, seeds))
    absent = planned.keys() - {*names}
    arms += [Arm(name, name, {}, None, {}, tuple(sorted(planned[name]))) for name in absent]
    arms.sort(key=lambda a: (*_order(a.name), a.settings.get("updates", 0), a.parameters or 0))
    return Section(title, tuple(arms), (*notes, *_unlike(arms)))


def _unlike(arms: Sequence[Arm]) -> list[str]:
    """Name the conditions under which finished runs were not evaluated alike."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for run in (run for arm in arms for run in arm.finished.values()):
        sizes: dict[str, list[str]] = {}
        for one in sorted(run.evaluations, key=lambda one: one.seed):
            size = f"{one.protocol['envs']} × {one.protocol['episodes']}"
            sizes.setdefault(one.condition, []).append(f"seed {one.seed}: {size} episodes")
        for condition, listed in sizes.items():
            found.setdefault(condition, set()).add(tuple(listed))
    return [
        f"{condition}: runs were not evaluated alike, but with {'; or with '.join(ways)}."
        for condition, kinds in found.items()
        if len(kinds) > 1 and (ways := sorted(", ".join(kind) for kind in kinds))
    ]


def _identity(run: RunRecord) -> dict[str, Any]:
    settings = {k: v for k, v in to_dict(run.config).items() if k not in FREE}
    return {**settings, "updates": run.budget}


def _with_updates(settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the arms, with their updates where these differ."""
    budgets = {own["updates"] for own in settings.values()}
    if len(budgets) == 1:
        return [own["arm"] for own in settings.values()]
    return [f"{own['arm']}, {own['updates']:,} updates" for own in settings.values()]


def _told(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else may tell arms of the same name apart; their task is the same."""
    return {key: value for key, value in settings.items() if key not in ("task", "arm", "updates")}


def _order(name: str) -> tuple[int, str]:
    return (ARMS.index(name) if name in ARMS else len(ARMS), name)


def _distance(arm: Arm, other: Arm) -> tuple[int, int]:
    """Count the settings in which two arms differ, apart from name and network; then the size."""
    one, two = ({**a.settings, "arm": "", "actor": {}} for a in (arm, other))
    return len(find_differences(one, two)), abs((arm.parameters or 0) - (other.parameters or 0))


def _count(run: RunRecord) -> int:
    inputs, outputs = observation_size(run.config.task)
    return count_parameters(build_actor(run.config.actor, inputs, outputs))


def tell_apart(names: Sequence[str], settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return unique names: those that are equal get the settings in which they differ.

    Args:
        names: One a thing.
        settings: Nested settings of each.
    """
    flat = [flatten(one) for one in settings]
    labels = []
    for name, own in zip(names, flat, strict=True):
        same = [other for other_name, other in zip(names, flat, strict=True) if other_name == name]
        keys = [key for key in own if any(other.get(key) != own[key] for other in same)]
        degree = own.get("actor.degree", 2)
        if degree != 2 and "actor.degree" not in keys and f"degree{degree}" not in name:
            keys.insert(0, "actor.degree")
        shown = [f"{key.rpartition('.')[2]} {_short(own[key])}" for key in keys[:_SHOWN]]
        shown += [f"{len(keys) - _SHOWN} more"] if len(keys) > _SHOWN else []
        labels.append(f"{name}, {', '.join(shown)}" if shown else name)
    seen: Counter[str] = Counter()
    for index, label in enumerate(labels):
        seen[label] += 1
        labels[index] = f"{label} #{seen[label]}" if seen[label] > 1 else label
    return labels


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "-".join(_short(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
