"""The output of campaigns: a table of arms and seeds, and status lines during a run."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor._console import count, duration, text_table
from prism_motor.campaigns.ledger import Ledger
from prism_motor.campaigns.locks import LOCK, has_failed, is_locked

if TYPE_CHECKING:
    from prism_motor.campaigns.config import Campaign
    from prism_motor.campaigns.work import PlannedPreparation, PlannedWork


class Display:
    """A status line, rewritten in place on a terminal and printed periodically elsewhere.

    Args:
        every: Seconds between status lines when the output is not a terminal.
    """

    def __init__(self, every: float = 60.0) -> None:
        self.terminal = sys.stdout.isatty()
        self.every = 1.0 if self.terminal else every
        self.shown = time.monotonic() - self.every + 5.0
        self.width = 0

    def event(self, text: str) -> None:
        """Print an event on its own line."""
        self._clear()
        print(text, flush=True)

    def status(self, describe: Callable[[], str]) -> None:
        """Show the overall progress if an update is due."""
        if time.monotonic() - self.shown < self.every:
            return
        self.shown = time.monotonic()
        text = describe()
        if not self.terminal:
            print(text, flush=True)
            return
        self._clear()
        text = text[: shutil.get_terminal_size().columns - 1]
        self.width = len(text)
        print(text, end="", flush=True)

    def _clear(self) -> None:
        if self.width:
            print("\r" + " " * self.width + "\r", end="")
            self.width = 0


def describe_status(campaign: Campaign, folder: Path, jobs: int) -> str:
    """Describe the state of all runs and the time left with ``jobs`` at a time."""
    ledger = Ledger(campaign, folder)
    parts = [f"{campaign.name}, preset {campaign.preset}, in {folder}"]
    if ledger.preparations:
        parts.append(_table(_preparation_rows(ledger, ledger.preparations)))
    if ledger.sweep is not None:
        parts.append(_table(_tuning_rows(ledger)))
    for variant in ledger.plan.variants:
        runs = [run for run in ledger.reported if run.variant == variant.name]
        rows = [[variant.name or "arm", *(f"seed {seed}" for seed in campaign.seeds)]]
        for arm in campaign.arms:
            cells = [_cell(ledger, run) for run in runs if run.arm == arm.name]
            rows.append([arm.name, *cells])
        parts.append(_table(rows))
    running = is_locked(folder / LOCK)
    parts.append(
        f"{ledger.finished} of {count(len(ledger), 'run')} done; {_left(ledger, jobs)}\n"
        + ("A runner is active." if running else "No runner is active.")
    )
    return "\n\n".join(parts)


def _table(rows: list[list[str]]) -> str:
    return text_table(rows, numbers_from=len(rows[0]))


def _left(ledger: Ledger, jobs: int) -> str:
    if ledger.finished == len(ledger):
        return "nothing is left to do."
    seconds = ledger.seconds_left(jobs)
    if seconds is None:
        return "no training has started, so there is no estimate yet."
    return f"about {duration(seconds)} left with {count(jobs, 'job')} at a time."


def _preparation_rows(ledger: Ledger, work: list[PlannedPreparation]) -> list[list[str]]:
    rows = [[work[0].preparation.title, ""]]
    return rows + [[one.variant or one.title, _cell(ledger, one)] for one in work]


def _tuning_rows(ledger: Ledger) -> list[list[str]]:
    assert ledger.sweep is not None
    rows = [["tuning", "runs", "chosen"]]
    for name, arm in ledger.sweep["arms"].items():
        runs = [run for run in ledger.tuning if run.arm == name]
        done = sum(ledger.is_finished(run) for run in runs)
        running = sum(is_locked(run.log) for run in runs)
        failed = sum(not ledger.is_finished(run) and has_failed(run.log) for run in runs)
        parts = [f"{done} of {len(runs)}"]
        parts += [
            f"{number} {what}"
            for number, what in ((running, "running"), (failed, "failed"))
            if number
        ]
        chosen = arm["chosen"] or {}
        listed = ", ".join(f"{key} {value}" for key, value in chosen.items())
        rows.append([name, ", ".join(parts), listed or "-"])
    return rows


def _cell(ledger: Ledger, work: PlannedWork) -> str:
    """Summarise the state of a piece of work in a few words."""
    state = ledger.state(work)
    if state.done:
        return "done"
    if state.problem:
        return "unusable"
    if state.diverged and not state.trained:
        return f"diverged at {state.updates}"
    busy = is_locked(work.log)
    ended = "failed" if has_failed(work.log) else "stopped"
    if state.trained:
        word = "evaluating" if busy else "failed" if ended == "failed" else "trained"
        return f"{word}, {state.evaluated} of {count(state.evaluations, 'evaluation')}"
    row = work.live_updates() if busy else None
    if busy:
        return f"running, {100 * (row[0] if row else state.updates) / state.total:.0f} %"
    if state.updates:
        return f"{ended} at {100 * state.updates / state.total:.0f} %"
    return ended if ended == "failed" else "missing"
