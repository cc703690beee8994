"""Logs of jobs, and the lock of a campaign.

The log of a job is also its lock, held for as long as the job runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from prism_motor.campaigns.config import CampaignError
from prism_motor.runs.layout import LOCK
from prism_motor.runs.locks import Lock, LockedError, fcntl, try_lock

if fcntl is None:  # Windows
    raise CampaignError(
        "Campaigns lock their folders with flock, which this system does not have. Use Linux, "
        "macOS or WSL, or train the runs one by one with prism train."
    )

_MARK = "-- "
"""Start of a line that is not the job's own."""

_EXIT_CODE = "exit code "
"""How the last line of a finished job's log goes on."""

_FINE = ("0", *(str(code) for number in (1, 2, 15) for code in (128 + number, -number)))
"""Exit codes of jobs that succeeded or were asked to stop: by hang-up, Ctrl-C or termination."""


def is_locked(path: Path) -> bool:
    """Return whether a file is locked."""
    try:
        with path.open("r") as file:
            return try_lock(file) is False
    except OSError:
        return False


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Make this process the only runner in a campaign's folder."""
    refusal = (
        f"{folder} is already being run by {{owner}}. Watch it with: prism campaign status {folder}"
    )
    lock = Lock(folder / LOCK, refusal)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except LockedError as error:
        raise CampaignError(str(error)) from error
    except OSError as error:
        raise CampaignError(
            f"Cannot write to {folder}: {error.strerror or error}. Choose another folder (--out)."
        ) from error
    with lock:
        yield


def mark_end(log: Path, code: int) -> None:
    """Append the exit code to a job's log."""
    with log.open("a") as file:
        note_in(file, f"{_EXIT_CODE}{code}")


def note_in(log: IO[str], text: str) -> None:
    """Append a line of the runner's to a job's log."""
    log.write(f"{_MARK}{text}\n")
    log.flush()


def read_tail(log: Path, lines: int) -> list[str]:
    """Return the last lines of a finished job's log, without the exit code."""
    text = log.read_text(errors="replace").splitlines()
    return [line for line in text if not line.startswith(_MARK + _EXIT_CODE)][-lines:]


def has_failed(log: Path) -> bool:
    """Return whether the last job of a run failed; Ctrl-C does not count."""
    try:
        last = log.read_text(errors="replace").splitlines()[-1:]
    except OSError:
        return False
    return (
        bool(last) and last[0].startswith(_MARK + _EXIT_CODE) and last[0].split()[-1] not in _FINE
    )
