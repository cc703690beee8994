"""One cell: an arm on a problem at one size and amount of data, tuned and then trained."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch

from prism_motor.nn import count_parameters, prune
from prism_motor.studies.fitting import Member, Standardised, train_together, unexplained
from prism_motor.studies.lab.arms import find_arm
from prism_motor.studies.lab.config import FIRST_TUNING, LabConfig
from prism_motor.studies.lab.problems import PROBLEMS, DataRequest
from prism_motor.studies.lab.structure import Structure, measure_structure
from prism_motor.studies.networks import StudyArm

_MOST_PARAMETERS = 1_000_000
"""Parameters of all networks that are trained as one program; more gain no speed."""

_STRUCTURE_SAMPLES, _STRUCTURE_HELD_OUT = 10_000, 4000
"""Rows on which the structure of a problem is measured, whatever the cells have."""


@dataclass(frozen=True)
class CellKey:
    """Which cell."""

    problem: str
    arm: str
    size: int
    samples: int

    def __str__(self) -> str:
        return f"{self.problem} {self.arm} {self.size:,} parameters {self.samples:,} samples"


@dataclass(frozen=True)
class LabFit:
    """One trained network and the shares of variance it leaves; ``None`` if it diverged."""

    seed: int
    learning_rate: float
    validation: float | None
    test: float | None
    extrapolation: float | None
    kept: int | None = None
    """Parameters that are left when products behind closed gates are cut out; ``None`` for arms
    whose gates cost nothing, which close none."""


@dataclass
class CellResult:
    """What is known about a cell so far."""

    parameters: int = 0
    """Parameters of the network."""
    tuning: list[LabFit] = field(default_factory=list)
    """Fits on tuning seeds."""
    seeds: list[LabFit] = field(default_factory=list)
    """Fits on reported and confirming seeds."""
    seconds: float = 0.0
    """Processor time."""

    def missing_tuning(self, config: LabConfig) -> list[tuple[int, float]]:
        """Return the tuning fits, seed and rate, that are not done."""
        done = {(fit.seed, fit.learning_rate) for fit in self.tuning}
        wanted = [(seed, rate) for seed in config.tuning for rate in config.learning_rates]
        return [one for one in wanted if one not in done]

    def rate(self, config: LabConfig) -> float:
        """Return the rate with the lowest validation error, geometric mean over tuning seeds."""

        def error(rate: float) -> float:
            found = [
                fit.validation
                for fit in self.tuning
                if fit.learning_rate == rate and fit.seed in config.tuning
            ]
            return sum(math.inf if e is None else math.log(max(e, 1e-12)) for e in found)

        return min(config.learning_rates, key=error)

    def at(self, rate: float, seeds: Iterable[int]) -> dict[int, LabFit]:
        """Return the fits at a rate on some seeds, by seed."""
        wanted = set(seeds)
        return {f.seed: f for f in self.seeds if f.learning_rate == rate and f.seed in wanted}

    def add(self, more: CellResult) -> None:
        """Join what was found later."""
        self.parameters = more.parameters
        self.tuning += more.tuning
        self.seeds += more.seeds
        self.seconds += more.seconds


@dataclass(frozen=True)
class CellJob:
    """What a worker has to do for one cell."""

    key: CellKey
    known: CellResult
    """What is known already, which is not done again."""
    seeds: tuple[int, ...]
    """Seeds to have after tuning."""

    def __str__(self) -> str:
        return str(self.key)


def is_finished(result: CellResult, config: LabConfig, seeds: Sequence[int]) -> bool:
    """Return whether a cell is tuned and has fits of all seeds at the chosen rate."""
    if result.missing_tuning(config):
        return False
    return len(result.at(result.rate(config), seeds)) == len(seeds)


class CellRunner:
    """Does cells, in a worker process."""

    def __init__(self, config: LabConfig) -> None:
        torch.set_num_threads(1)
        self._config = config

    def __call__(self, job: CellJob) -> CellResult:
        """Tune the cell as far as needed, then train the missing seeds at the chosen rate."""
        began = time.process_time()
        found = CellResult()
        found.tuning = self._fit(job.key, job.known.missing_tuning(self._config), found)
        whole = CellResult(0, job.known.tuning + found.tuning, job.known.seeds)
        rate = whole.rate(self._config)
        done = whole.at(rate, job.seeds)
        missing = [(seed, rate) for seed in job.seeds if seed not in done]
        found.seeds = self._fit(job.key, missing, found)
        found.seconds = round(time.process_time() - began, 2)
        return found

    def _fit(
        self, key: CellKey, fits: Sequence[tuple[int, float]], into: CellResult
    ) -> list[LabFit]:
        arm = find_arm(key.arm)
        most = max(1, _MOST_PARAMETERS // key.size)
        done: list[LabFit] = []
        for start in range(0, len(fits), most):
            members = [self._member(key, arm, *one) for one in fits[start : start + most]]
            into.parameters = count_parameters(members[0].network)
            train_together(
                members,
                updates=self._config.updates,
                batch=self._config.batch,
                gate_rate=arm.gate_rate,
                gate_cost=arm.gate_cost,
            )
            done += [_evaluate(member, pruned=arm.gate_cost > 0) for member in members]
        return done

    def _member(self, key: CellKey, arm: StudyArm, seed: int, rate: float) -> Member:
        config = self._config
        data = _data(key.problem, DataRequest(key.samples, config.held_out, config.reach, seed))
        torch.manual_seed(seed)
        problem = PROBLEMS[key.problem]
        network = arm.make(*problem.shape, key.size, history=problem.history)
        return Member(network, data, seed, rate)


def _evaluate(member: Member, *, pruned: bool) -> LabFit:
    parts = (member.data.validation, member.data.test, member.data.extrapolation)
    columns = {"all": slice(None)}
    shares = [unexplained(member.network, *part, columns)["all"] for part in parts]
    kept = count_parameters(prune(member.network)) if pruned else None
    return LabFit(member.seed, member.learning_rate, *shares, kept=kept)


@lru_cache(maxsize=24)  # all arms of a problem follow each other
def _data(problem: str, request: DataRequest) -> Standardised:
    return Standardised(PROBLEMS[problem].make(request))


class StructureRunner:
    """Measures how multiplicative problems are, in a worker process."""

    def __init__(self) -> None:
        torch.set_num_threads(1)

    def __call__(self, problem: str) -> Structure:
        """Measure a problem on data that are not reported."""
        request = DataRequest(_STRUCTURE_SAMPLES, _STRUCTURE_HELD_OUT, 1.0, FIRST_TUNING)
        return measure_structure(Standardised(PROBLEMS[problem].make(request)))
