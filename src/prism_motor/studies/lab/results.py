"""From finished cells to gains over the reference, with intervals and corrected for their number.

An error is the share of variance that a network leaves unexplained. Errors differ by factors, so
all comparisons are paired differences of logarithms over seeds, shown as ratios.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from prism_motor.statistics import (
    Claim,
    Estimate,
    Interval,
    Measure,
    geometric_estimate,
    make_claim,
    t_interval,
    with_holm,
)
from prism_motor.studies.lab.arms import ARMS, REFERENCE
from prism_motor.studies.lab.cells import CellKey, CellResult, is_finished
from prism_motor.studies.lab.config import LabConfig
from prism_motor.studies.lab.problems import PROBLEMS, Problem
from prism_motor.studies.lab.records import LabRecords
from prism_motor.studies.lab.runner import plan_cells
from prism_motor.studies.lab.structure import Structure
from prism_motor.studies.networks import StudyArm

PARTS = ("test", "extrapolation")
"""Parts of the data that errors are reported on."""

MULTIPLICATIVE = 0.5
"""From this multiplicativity on, a problem counts as multiplicative in summaries."""

_ERROR = Measure("error", "unexplained variance", higher_is_better=False)


class Setting(NamedTuple):
    """A size and an amount of data."""

    size: int
    samples: int

    def __str__(self) -> str:
        return f"{self.size:,} parameters, {self.samples:,} samples"


@dataclass(frozen=True)
class Ratio:
    """An error relative to the reference's: below 1 is a gain."""

    centre: float
    """Geometric mean over seeds."""
    interval: Interval | None
    """95 % interval over seeds."""

    @classmethod
    def of(cls, difference: float, interval: Interval | None) -> Ratio:
        """Return the ratio of a difference of logarithms."""
        return cls(math.exp(difference), interval and Interval(*map(math.exp, interval)))


@dataclass(frozen=True)
class LabRow:
    """One arm on one problem at one setting."""

    problem: Problem
    arm: StudyArm
    setting: Setting
    parameters: int
    kept: float | None
    """Share of the parameters that pruning leaves, mean over seeds; ``None`` in older records."""
    learning_rate: float
    at_edge: bool
    """Whether the rate is the smallest or largest of the sweep: a better one may lie beyond."""
    errors: Mapping[str, Mapping[int, float | None]]
    """Errors by part and seed; ``None`` if the network diverged."""
    claims: Mapping[str, Claim]
    """Comparison with the reference by part, in logarithms; empty for the reference itself."""

    def estimate(self, part: str) -> Estimate | None:
        """Return the geometric mean over seeds; ``None`` if any diverged."""
        errors = [error for error in self.errors[part].values() if error is not None]
        return geometric_estimate(errors) if len(errors) == len(self.errors[part]) else None

    def ratio(self, part: str) -> Ratio | None:
        """Return the error relative to the reference's; ``None`` if either diverged."""
        claim = self.claims.get(part)
        if claim is None or claim.comparison is None:
            return None
        return Ratio.of(claim.comparison.difference, claim.comparison.interval)

    def outcome(self, part: str) -> str:
        """Return ``better``, ``worse``, ``open``, ``untested`` or ``diverged``."""
        if self.estimate(part) is None:
            return "diverged"
        claim = self.claims.get(part)
        return "untested" if claim is None else claim.outcome


@dataclass(frozen=True)
class LabSummary:
    """All gains of a laboratory for one set of seeds."""

    seeds: tuple[int, ...]
    """The seeds behind the numbers."""
    rows: Sequence[LabRow]
    """Finished cells whose reference is finished, too."""
    structures: Mapping[str, Structure]
    """Structure by problem."""
    missing: int
    """Cells that are not finished, or whose reference is not."""

    @property
    def problems(self) -> list[Problem]:
        """The problems, most multiplicative first."""
        names = dict.fromkeys(row.problem.name for row in self.rows)
        ordered = sorted(names, key=lambda name: -self.structures[name].multiplicativity)
        return [PROBLEMS[name] for name in ordered]

    @property
    def arms(self) -> list[StudyArm]:
        """The arms, the reference first."""
        return [arm for arm in ARMS if any(row.arm == arm for row in self.rows)]

    @property
    def settings(self) -> list[Setting]:
        """Sizes and amounts of data."""
        return sorted({row.setting for row in self.rows})

    def row(self, problem: Problem, arm: StudyArm, setting: Setting) -> LabRow | None:
        """Return one row, if it is there."""
        wanted = (problem, arm, setting)
        return next((r for r in self.rows if (r.problem, r.arm, r.setting) == wanted), None)

    def overall(
        self, arm: StudyArm, setting: Setting, part: str, *, multiplicative: bool | None = None
    ) -> Ratio | None:
        """Return the geometric mean of an arm's ratios over problems, with its interval over seeds.

        Args:
            arm: The arm.
            setting: The size and amount of data.
            part: The part of the data.
            multiplicative: Only problems that are, or are not, multiplicative; default: all.
        """
        by_problem: list[dict[int, float]] = []
        for problem in self.problems:
            high = self.structures[problem.name].multiplicativity >= MULTIPLICATIVE
            ours, theirs = (self.row(problem, one, setting) for one in (arm, REFERENCE))
            if multiplicative not in (None, high) or ours is None or theirs is None:
                continue
            if ours.estimate(part) is None or theirs.estimate(part) is None:
                continue
            own, other = (_logarithms(one.errors[part]) for one in (ours, theirs))
            by_problem.append({seed: own[seed] - other[seed] for seed in self.seeds})
        if not by_problem:
            return None
        means = [statistics.fmean(one[seed] for one in by_problem) for seed in self.seeds]
        return Ratio.of(statistics.fmean(means), t_interval(means))


def summarise(records: LabRecords, seeds: Sequence[int]) -> LabSummary:
    """Compare every finished cell with the reference of its problem and setting.

    All comparisons of one part of the data are one family for Holm's correction.

    Args:
        records: The laboratory.
        seeds: Reported or confirming seeds.
    """
    config = records.config()
    keys = plan_cells(config)
    known = {key: records.cell(key) for key in keys}
    done = {k: cell for k, cell in known.items() if is_finished(cell, config, seeds)}
    used = [key for key in done if _reference(key) in done]
    errors = {key: _errors(done[key], config, seeds) for key in used}
    pairs = [(key, part) for key in used for part in PARTS if key.arm != REFERENCE.name]
    claims: dict[tuple[CellKey, str], Claim] = {}
    for part in PARTS:
        chosen = [key for key, one in pairs if one == part]
        made = with_holm([_claim(key, errors, part) for key in chosen])
        claims |= {(key, part): claim for key, claim in zip(chosen, made, strict=True)}
    arms = {arm.name: arm for arm in ARMS}
    rows = [
        LabRow(
            problem=PROBLEMS[key.problem],
            arm=arms[key.arm],
            setting=Setting(key.size, key.samples),
            parameters=done[key].parameters,
            kept=_kept(done[key], config, seeds),
            learning_rate=(rate := done[key].rate(config)),
            at_edge=rate in (min(config.learning_rates), max(config.learning_rates)),
            errors=errors[key],
            claims={part: claims[key, part] for part in PARTS if (key, part) in claims},
        )
        for key in used
    ]
    return LabSummary(tuple(seeds), rows, records.structures, len(keys) - len(used))


def _reference(key: CellKey) -> CellKey:
    return CellKey(key.problem, REFERENCE.name, key.size, key.samples)


def _kept(cell: CellResult, config: LabConfig, seeds: Sequence[int]) -> float | None:
    counts = [fit.kept for fit in cell.at(cell.rate(config), seeds).values()]
    known = [count for count in counts if count is not None]
    return sum(known) / len(known) / cell.parameters if len(known) == len(counts) else None


def _errors(
    cell: CellResult, config: LabConfig, seeds: Sequence[int]
) -> dict[str, dict[int, float | None]]:
    fits = cell.at(cell.rate(config), seeds)
    return {part: {seed: getattr(fits[seed], part) for seed in seeds} for part in PARTS}


def _claim(key: CellKey, errors: Mapping[CellKey, Any], part: str) -> Claim:
    # A comparison over the seeds that happened to converge would flatter an arm.
    ours, theirs = (_logarithms(errors[one][part]) for one in (key, _reference(key)))
    if len(ours) < len(errors[key][part]):
        ours = {}
    return make_claim((key.arm, ours), (REFERENCE.name, theirs), key.problem, _ERROR)


def _logarithms(errors: Mapping[int, float | None]) -> dict[int, float]:
    return {seed: math.log(max(e, 1e-12)) for seed, e in errors.items() if e is not None}
