"""All runs of a campaign with their states: what is done, what can start, how long it will take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

from prism.campaigns import tuning
from prism.campaigns.config import Campaign
from prism.campaigns.plan import PlannedRun, Settings, plan_runs
from prism.campaigns.state import RunState, evaluation_seconds, live_updates, read_state

EVALUATION_COST = 0.4
"""Cost of a sample of an evaluation, in samples of training; a guess until one was measured."""


class Book:
    """What a campaign has done, read from its folder when made and run by run later.

    Args:
        campaign: The campaign.
        folder: Its folder.
    """

    def __init__(self, campaign: Campaign, folder: Path) -> None:
        self.campaign, self.folder = campaign, folder
        self.tuning = tuning.plan_tuning(campaign, folder)
        self.states: dict[Path, RunState] = {run.path: read_state(run) for run in self.tuning}
        self.sweep: dict[str, Any] | None = None
        self.reported: list[PlannedRun] = []
        self._plan_reported()

    def __iter__(self) -> Iterator[PlannedRun]:
        """All runs, in the order in which they are made."""
        return iter([*self.tuning, *self.reported])

    def state(self, run: PlannedRun) -> RunState:
        """Return the state of a run as last read."""
        return self.states[run.path]

    def refresh(self, run: PlannedRun) -> RunState:
        """Read the state of a run again, and plan what its end makes possible."""
        self.states[run.path] = read_state(run)
        if run.setting is not None:
            self._plan_reported()
        return self.states[run.path]

    def _plan_reported(self) -> None:
        winners: dict[str, Settings | None] = {arm.name: {} for arm in self.campaign.arms}
        if self.campaign.tuning is not None:
            self.sweep = tuning.judge(self.campaign, self.tuning, self.states)
            winners = {name: arm["chosen"] for name, arm in self.sweep["arms"].items()}
        before = {run.path: run for run in self.reported}
        self.reported = plan_runs(self.campaign, self.folder, winners)
        for run in self.reported:
            if run != before.get(run.path):
                self.states[run.path] = read_state(run)

    def write(self) -> None:
        """Write the sweep so far into the campaign's folder."""
        if self.sweep is not None:
            tuning.write_results(self.folder, self.sweep)

    @property
    def finished(self) -> int:
        """Number of runs with nothing left to do."""
        return sum(self.is_finished(run) for run in self)

    def is_finished(self, run: PlannedRun) -> bool:
        """Say whether nothing is left to do; a tuning run that diverged has said what it can."""
        state = self.state(run)
        return state.done or (run.setting is not None and state.diverged)

    def seconds_left(self, jobs: int) -> float | None:
        """Estimate how long the rest takes with some jobs at a time; ``None`` before any measure.

        Updates cost what they cost in the same arm and variant so far, else in the same arm, else
        on average.
        """
        rates: dict[tuple[str, ...], list[float]] = {}
        evaluations: list[float] = []
        live: dict[Path, int] = {}
        for run in self:
            evaluations += evaluation_seconds(run)
            row = live_updates(run)
            if row is not None and row[0]:
                live[run.path] = row[0]
                for kind in _kinds(run):
                    rates.setdefault(kind, []).append(row[1] / row[0])
        if not rates:
            return None
        left = [0.0]
        for run in self:
            state = self.state(run)
            if state.problem or (state.diverged and not state.trained):
                continue
            update = mean(next(rates[kind] for kind in _kinds(run) if kind in rates))
            done = max(state.updates, min(live.get(run.path, 0), state.total))
            missing = state.evaluations - state.evaluated
            evaluation = median(evaluations) if evaluations else _guess_evaluation(run, update)
            left.append((state.total - done) * update + missing * evaluation)
        return max(sum(left) / jobs, *left)


def _kinds(run: PlannedRun) -> tuple[tuple[str, ...], ...]:
    return ((run.variant, run.arm), (run.arm,), ())


def _guess_evaluation(run: PlannedRun, update: float) -> float:
    if run.evaluation is None:
        return 0.0
    samples = run.evaluation.envs * run.evaluation.episodes * run.config.task.episode_steps
    return EVALUATION_COST * samples * update / run.config.samples_per_iteration
