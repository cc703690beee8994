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

    def seconds_left(self) -> float | None:
        """Estimate the work that is left, in seconds of one job; ``None`` before any measure."""
        by_kind: dict[tuple[str, ...], list[float]] = {}
        evaluation_times: list[float] = []
        live: dict[Path, int] = {}
        for run in self:
            evaluation_times += evaluation_seconds(run)
            row = live_updates(run)
            if row is not None and row[0]:
                live[run.path] = row[0]
                for kind in ((run.variant, run.arm), (run.arm,), ()):
                    by_kind.setdefault(kind, []).append(row[1] / row[0])
        if () not in by_kind:
            return None
        left = 0.0
        for run in self:
            state = self.state(run)
            if state.problem or (state.diverged and not state.trained):
                continue
            kinds = ((run.variant, run.arm), (run.arm,), ())
            update = mean(next(by_kind[kind] for kind in kinds if kind in by_kind))
            done = max(state.updates, min(live.get(run.path, 0), state.total))
            left += (state.total - done) * update
            missing = state.evaluations - state.evaluated
            if missing and run.evaluation is not None:
                samples = run.evaluation.envs * run.evaluation.episodes
                samples *= run.config.task.episode_steps
                guess = EVALUATION_COST * samples * update / run.config.samples_per_iteration
                left += missing * (median(evaluation_times) if evaluation_times else guess)
        return left
