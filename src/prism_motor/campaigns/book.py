"""All runs of a campaign with their states: what is done, what can start, how long it will take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from prism_motor.campaigns import tuning
from prism_motor.campaigns.planned import PlannedRun
from prism_motor.campaigns.planners import AnyCampaign, make_planner
from prism_motor.campaigns.state import RunState, evaluation_seconds, read_state


class Book:
    """What a campaign has done, read from its folder when made and run by run later.

    Args:
        campaign: The campaign.
        folder: Its folder.
    """

    def __init__(self, campaign: AnyCampaign, folder: Path) -> None:
        self.campaign, self.folder = campaign, folder
        self.planner = make_planner(campaign, folder)
        self.first = self.planner.first
        self.states: dict[Path, RunState] = {run.path: read_state(run) for run in self.first}
        self.reported: Sequence[PlannedRun] = []
        self._plan_reported()

    @property
    def sweep(self) -> dict[str, Any] | None:
        """The tuning with its winners so far, if there is any."""
        return self.planner.sweep

    def __iter__(self) -> Iterator[PlannedRun]:
        """All runs, in the order in which they are made."""
        return iter([*self.first, *self.reported])

    def state(self, run: PlannedRun) -> RunState:
        """Return the state of a run as last read."""
        return self.states[run.path]

    def refresh(self, run: PlannedRun) -> RunState:
        """Read the state of a run again, and plan what its end makes possible."""
        self.states[run.path] = read_state(run)
        if any(run.path == one.path for one in self.first):
            self._plan_reported()
        return self.states[run.path]

    def _plan_reported(self) -> None:
        before = {run.path: run for run in self.reported}
        self.reported = self.planner.plan_reported(self.states)
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
            row = run.live_updates()
            if row is not None and row[0]:
                live[run.path] = row[0]
                for kind in _kinds(run):
                    rates.setdefault(kind, []).append(row[1] / row[0])
        left = [0.0]
        for run in self:
            state = self.state(run)
            if state.problem or (state.diverged and not state.trained):
                continue
            known = [rates[kind] for kind in _kinds(run) if kind in rates]
            if not known:
                if self.is_finished(run):
                    continue
                return None
            update = mean(known[0])
            done = max(state.updates, min(live.get(run.path, 0), state.total))
            missing = state.evaluations - state.evaluated
            evaluation = median(evaluations) if evaluations else run.guess_evaluation(update)
            left.append((state.total - done) * update + missing * evaluation)
        return max(sum(left) / jobs, *left)


def _kinds(run: PlannedRun) -> tuple[tuple[str, ...], ...]:
    """Return groups of runs whose updates cost alike, the narrowest first."""
    return ((run.verb, run.variant, run.arm), (run.verb, run.arm), (run.verb,))
