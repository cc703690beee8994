"""How far a campaign is, as a table of arms and seeds."""

from __future__ import annotations

from pathlib import Path

from prism_motor.campaigns.book import Book
from prism_motor.campaigns.display import say_duration
from prism_motor.campaigns.jobs import has_failed
from prism_motor.campaigns.locks import is_locked
from prism_motor.campaigns.planned import PlannedRun
from prism_motor.campaigns.planners import AnyCampaign


def describe_status(campaign: AnyCampaign, folder: Path, jobs: int) -> str:
    """Write the state of all runs, and how long the rest will take with ``jobs`` at a time."""
    book = Book(campaign, folder)
    lines = [f"{campaign.name}, preset {campaign.preset}, in {folder}"]
    if book.sweep is not None:
        lines += ["", *_tuning_lines(book)]
    elif book.first:
        rows = [["demonstrations", ""], *([run.variant, _cell(book, run)] for run in book.first)]
        lines += ["", *_aligned(rows)]
    for variant in [variant.name for variant in campaign.variants] or [""]:
        runs = [run for run in book.reported if run.variant == variant]
        cells = [[_cell(book, run) for run in runs if run.arm == arm.name] for arm in campaign.arms]
        rows = [[variant or "arm", *(f"seed {seed}" for seed in campaign.seeds)]]
        rows += [[arm.name, *row] for arm, row in zip(campaign.arms, cells, strict=True)]
        lines += ["", *_aligned(rows)]
    running = is_locked(folder / ".lock")
    lines += ["", f"{book.finished} of {len(list(book))} runs done; " + _left(book, jobs)]
    lines.append("A runner is at work." if running else "No runner is at work.")
    return "\n".join(lines)


def _left(book: Book, jobs: int) -> str:
    if book.finished == len(list(book)):
        return "nothing is left to do."
    seconds = book.seconds_left(jobs)
    if seconds is None:
        return "no training has begun, so there is no estimate yet."
    return f"about {say_duration(seconds)} left with {jobs} jobs at a time."


def _tuning_lines(book: Book) -> list[str]:
    assert book.sweep is not None
    rows = [["tuning", "runs", "chosen"]]
    for name, arm in book.sweep["arms"].items():
        runs = [run for run in book.first if run.arm == name]
        done = sum(book.is_finished(run) for run in runs)
        running = sum(is_locked(run.log) for run in runs)
        failed = sum(not book.is_finished(run) and has_failed(run.log) for run in runs)
        words = [f"{done} of {len(runs)}"]
        words += [
            f"{count} {what}" for count, what in ((running, "running"), (failed, "failed")) if count
        ]
        chosen = arm["chosen"] or {}
        listed = ", ".join(f"{key} {value}" for key, value in chosen.items())
        rows.append([name, ", ".join(words), listed or "-"])
    return _aligned(rows)


def _cell(book: Book, run: PlannedRun) -> str:
    """Say in a few words how far a run is."""
    state = book.state(run)
    if state.done:
        return "done"
    if state.problem:
        return "unusable"
    if state.diverged and not state.trained:
        return f"diverged at {state.updates}"
    busy = is_locked(run.log)
    ended = "failed" if has_failed(run.log) else "stopped"
    if state.trained:
        word = "evaluating" if busy else "failed" if ended == "failed" else "trained"
        return f"{word}, {state.evaluated} of {state.evaluations} evaluations"
    row = run.live_updates() if busy else None
    if busy:
        return f"running, {100 * (row[0] if row else state.updates) / state.total:.0f} %"
    if state.updates:
        return f"{ended} at {100 * state.updates / state.total:.0f} %"
    return ended if ended == "failed" else "missing"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    padded = (zip(row, widths, strict=True) for row in rows)
    return ["  ".join(text.ljust(width) for text, width in row).rstrip() for row in padded]
