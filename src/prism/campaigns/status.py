"""How far a campaign is, as a table of arms and seeds."""

from __future__ import annotations

from pathlib import Path

from prism.campaigns.book import Book
from prism.campaigns.config import Campaign
from prism.campaigns.display import say_duration
from prism.campaigns.locks import is_locked
from prism.campaigns.plan import PlannedRun
from prism.campaigns.runner import EXIT_MARK
from prism.campaigns.state import live_updates


def describe_status(campaign: Campaign, folder: Path, jobs: int) -> str:
    """Write the state of all runs, and how long the rest will take with ``jobs`` at a time."""
    book = Book(campaign, folder)
    lines = [f"{campaign.name}, preset {campaign.preset}, in {folder}"]
    if book.sweep is not None:
        lines += ["", *_tuning_lines(book)]
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
    seconds = book.seconds_left()
    if seconds is None:
        return "no run has begun, so there is no estimate yet."
    return f"about {say_duration(seconds / jobs)} left with {jobs} jobs at a time."


def _tuning_lines(book: Book) -> list[str]:
    assert book.sweep is not None
    rows = [["tuning", "runs", "chosen"]]
    for name, arm in book.sweep["arms"].items():
        runs = [run for run in book.tuning if run.arm == name]
        done = sum(book.is_finished(run) for run in runs)
        chosen = arm["chosen"] or {}
        listed = ", ".join(f"{key} {value}" for key, value in chosen.items())
        rows.append([name, f"{done} of {len(runs)}", listed or "-"])
    return _aligned(rows)


def _cell(book: Book, run: PlannedRun) -> str:
    """Say in a few words how far a run is."""
    state = book.state(run)
    busy = is_locked(run.log)
    if state.done:
        return "done"
    if state.problem:
        return "unusable"
    if state.trained:
        word = "evaluating" if busy else _stopped(run) or "trained"
        return f"{word}, {state.evaluated} of {state.evaluations} evaluations"
    if state.diverged:
        return f"diverged at {state.updates}"
    if busy:
        row = live_updates(run)
        return f"running, {100 * (row[0] if row else 0) / state.total:.0f} %"
    if not state.updates:
        return "failed" if _stopped(run) == "failed" else "missing"
    return f"{_stopped(run) or 'stopped'} at {100 * state.updates / state.total:.0f} %"


def _stopped(run: PlannedRun) -> str | None:
    """Return ``failed`` if the last job of the run ended with an error."""
    try:
        last = run.log.read_text(errors="replace").splitlines()[-1:]
    except OSError:
        return None
    code = last[0].removeprefix(EXIT_MARK) if last and last[0].startswith(EXIT_MARK) else "0"
    return None if code in ("0", "130") else "failed"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    padded = (zip(row, widths, strict=True) for row in rows)
    return ["  ".join(text.ljust(width) for text, width in row).rstrip() for row in padded]
