"""The state of a campaign's work: what is done, what can start and how long it will take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from prism_motor._checks import PrismError
from prism_motor.campaigns import tuning
from prism_motor.campaigns.plan import Plan
from prism_motor.runs.checkpoints import checkpoint_steps
from prism_motor.runs.layout import EVALUATIONS, NONFINITE, CheckpointError

if TYPE_CHECKING:
    from prism_motor.campaigns.config import Campaign
    from prism_motor.campaigns.work import PlannedRun, PlannedWork, Settings


@dataclass(frozen=True)
class RunState:
    """How far a piece of work has got."""

    updates: int
    """Updates in the newest checkpoint."""
    total: int
    """Updates required."""
    evaluated: int = 0
    """Valid evaluations done."""
    evaluations: int = 0
    """Evaluations required."""
    diverged: bool = False
    """Whether training stopped at a NaN or infinity, which resuming would only repeat."""
    problem: str | None = None
    """Why the folder cannot be used."""

    @property
    def trained(self) -> bool:
        """Whether all updates are done."""
        return self.updates >= self.total

    @property
    def step(self) -> str | None:
        """The next step: ``train``, ``evaluate`` or ``None``."""
        if self.problem or (self.diverged and not self.trained):
            return None
        if not self.trained:
            return "train"
        return "evaluate" if self.evaluated < self.evaluations else None

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.trained and self.evaluated >= self.evaluations and not self.problem

    @property
    def word(self) -> str:
        """The state of the training in one word."""
        if self.problem:
            return "unusable"
        if self.trained:
            return "trained"
        if self.diverged:
            return "diverged"
        return "started" if self.updates else "missing"


def read_state(work: PlannedWork) -> RunState:
    """Read the state of a piece of work from its folder; other settings are an error."""
    if work.waiting:
        return RunState(0, work.total, 0, work.evaluations)
    if work.path.exists():
        work.check()
    updates = work.count_updates()
    # A dump from before the newest checkpoint is history: the run was resumed past it.
    diverged = max(checkpoint_steps(work.path / NONFINITE), default=-1) >= updates
    evaluated, problem = 0, None
    if updates >= work.total:
        try:
            evaluated = work.count_evaluations()
        except PrismError as error:
            repair = isinstance(error, CheckpointError)
            problem = (
                f"{error} Repeat it: prism train --resume {work.path}" if repair else str(error)
            )
    return RunState(updates, work.total, evaluated, work.evaluations, diverged, problem)


class Ledger:
    """The state of a campaign, read in full at first and then one piece of work at a time.

    Args:
        campaign: The campaign.
        folder: Its folder.
    """

    def __init__(self, campaign: Campaign, folder: Path) -> None:
        self.campaign, self.folder = campaign, folder
        self.plan = Plan(campaign, folder)
        self.preparations = self.plan.preparations
        self.states: dict[Path, RunState] = {}
        self.tuning: list[PlannedRun] = []
        self.reported: list[PlannedRun] = []
        self.sweep: dict[str, Any] | None = None
        for work in self.preparations:
            self.states[work.path] = read_state(work)
        self._plan()

    def _plan(self) -> None:
        """Plan the runs, given the state of the work they depend on."""
        done = {work.variant: self.state(work).trained for work in self.preparations}
        unprepared = [variant for variant, trained in done.items() if not trained]
        waiting = self.plan.variants[0].name in unprepared
        # Tuning comes first, because the reported runs use the winning settings.
        self.tuning = self._read_changed(
            self.tuning, tuning.plan_tuning(self.plan, waiting=waiting)
        )
        self.sweep = tuning.judge(self.plan, self.tuning, self.states)
        winners: dict[str, Settings | None] = {arm.name: {} for arm in self.campaign.arms}
        if self.sweep is not None:
            winners = {name: arm["chosen"] for name, arm in self.sweep["arms"].items()}
        self.reported = self._read_changed(self.reported, self.plan.reported(winners, unprepared))

    def _read_changed(self, before: list[PlannedRun], now: list[PlannedRun]) -> list[PlannedRun]:
        """Read the states of runs that are new or whose plan has changed."""
        known = {run.path: run for run in before}
        for run in now:
            if run != known.get(run.path):
                self.states[run.path] = read_state(run)
        return now

    def __iter__(self) -> Iterator[PlannedWork]:
        """Iterate over all work in execution order."""
        return iter([*self.preparations, *self.tuning, *self.reported])

    def __len__(self) -> int:
        return len(self.preparations) + len(self.tuning) + len(self.reported)

    def state(self, work: PlannedWork) -> RunState:
        """Return the last known state of a piece of work."""
        return self.states[work.path]

    def refresh(self, work: PlannedWork) -> RunState:
        """Read the state of a piece of work again and plan what has become possible."""
        self.states[work.path] = read_state(work)
        if any(work.path == one.path for one in [*self.preparations, *self.tuning]):
            self._plan()
        return self.states[work.path]

    def write(self) -> None:
        """Write the results of the sweep so far into the campaign's folder."""
        if self.sweep is not None:
            tuning.write_results(self.folder, self.sweep)

    @property
    def finished(self) -> int:
        """Number of runs with nothing left to do."""
        return sum(self.is_finished(work) for work in self)

    def is_finished(self, work: PlannedWork) -> bool:
        """Return whether nothing is left to do; a diverged tuning run counts as finished."""
        state = self.state(work)
        return state.done or (work.setting is not None and state.diverged)

    def seconds_left(self, jobs: int, later: float = 0.0, startup: float = 0.0) -> float | None:
        """Estimate the remaining time with this many jobs; ``None`` before the first measurement.

        The time per update is that of the same arm and variant so far, else of the same arm, else
        the average.

        Args:
            jobs: How many run at a time.
            later: What else comes after them, in updates of one run.
            startup: Seconds that a job takes besides its updates and evaluations.
        """
        # Measured so far: seconds per update in each group of runs, and seconds per evaluation.
        rates: dict[tuple[str, ...], list[float]] = {}
        evaluations: list[float] = []
        live: dict[Path, int] = {}
        for work in self:
            evaluations += _evaluation_seconds(work)
            row = work.live_updates()
            if row is not None and row[0]:
                live[work.path] = row[0]
                for group in _groups(work):
                    rates.setdefault(group, []).append(row[1] / row[0])
        # Extrapolate to the remaining work.
        left = [0.0]
        for work in self:
            state = self.state(work)
            if state.problem or (state.diverged and not state.trained):
                continue
            known = [rates[group] for group in _groups(work) if group in rates]
            if not known:
                if self.is_finished(work):
                    continue
                return None
            update = mean(known[0])
            done = max(state.updates, min(live.get(work.path, 0), state.total))
            missing = state.evaluations - state.evaluated
            evaluation = median(evaluations) if evaluations else work.guess_evaluation(update)
            starts = (not state.trained) + (missing > 0)  # training and evaluation, a job each
            left.append((state.total - done) * update + missing * evaluation + starts * startup)
        updates = [rate for group in rates.values() for rate in group]
        return max(sum(left) / jobs, *left) + (later * mean(updates) if updates else 0.0)


def _groups(work: PlannedWork) -> tuple[tuple[str, ...], ...]:
    """Return groups of runs with similar cost per update, the narrowest first."""
    return ((work.verb, work.variant, work.arm), (work.verb, work.arm), (work.verb,))


def _evaluation_seconds(work: PlannedWork) -> list[float]:
    """Return the durations of evaluations, from the times between their files."""
    folder = work.path / EVALUATIONS
    if not folder.is_dir():
        return []
    times = sorted(file.stat().st_mtime for file in folder.glob("*.json"))
    return [after - before for before, after in pairwise(times)]
