"""Numbers that follow from others: means over conditions, and what needs no policy."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from prism_motor.report.keys import Fixed, Key, Means, Rates
from prism_motor.reporting import MEAN, ReportSpec

Episodes = Callable[[str], Iterable[Sequence[Mapping[str, Any]]]]
"""From a condition to the episodes of every run."""


def average_conditions(spec: ReportSpec, means: Means, rates: Rates) -> tuple[Means, Rates]:
    """Return means over the conditions that a domain averages, by seed, where all of them are."""
    found: Means = {}
    sums: Rates = {}
    if not spec.averaged:
        return found, sums
    for key in means:
        if key.condition != spec.averaged[0]:
            continue
        parts = [means.get(key._replace(condition=name), {}) for name in spec.averaged]
        common = [seed for seed in parts[0] if all(seed in part for part in parts)]
        if common:
            found[key._replace(condition=MEAN)] = {
                seed: statistics.fmean(part[seed] for part in parts) for seed in common
            }
    for key, seeds in found.items():
        if key.field == spec.rate.field and not key.solved:
            counts = [rates[key.label, name] for name in spec.averaged]
            sums[key.label, MEAN] = {
                seed: (sum(c[seed][0] for c in counts), sum(c[seed][1] for c in counts))
                for seed in seeds
            }
    return found, sums


def read_baselines(spec: ReportSpec, conditions: Sequence[str], episodes: Episodes) -> Fixed:
    """Return what needs no policy; runs agree on it, up to their versions of the simulator."""
    found: Fixed = {}
    for baseline in spec.baselines:
        for condition in conditions:
            runs = [rows for rows in episodes(condition) if rows]
            for measure in spec.measures:
                field = baseline.fields.get(measure.field)
                if field is None or not runs:
                    continue
                values = [statistics.fmean(float(row[field]) for row in rows) for rows in runs]
                key = Key(baseline.title, condition, measure.field)
                found[key] = measure.factor * statistics.fmean(values)
    return found | _average_fixed(spec, found)


def average_tasks(parts: Sequence[Fixed]) -> Fixed:
    """Return means over tasks, each with the same weight, of what all of them have."""
    common = [key for key in parts[0] if all(key in part for part in parts)]
    return {key: statistics.fmean(part[key] for part in parts) for key in common}


def _average_fixed(spec: ReportSpec, found: Fixed) -> Fixed:
    averaged: Fixed = {}
    for key in found:
        if not spec.averaged or key.condition != spec.averaged[0]:
            continue
        same = [key._replace(condition=name) for name in spec.averaged]
        if all(one in found for one in same):
            averaged[key._replace(condition=MEAN)] = statistics.fmean(found[one] for one in same)
    return averaged
