"""Locks that the system releases when their holder ends, however it ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from prism_motor.campaigns.config import CampaignError

try:
    import fcntl
except ImportError as error:  # Windows
    raise CampaignError(
        "Campaigns lock their folders with flock, which this system does not have. Use Linux, "
        "macOS or WSL, or train the runs one by one with prism train."
    ) from error


def try_lock(file: IO[str]) -> bool:
    """Lock an open file for as long as anyone has it open; say whether that worked."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """Say whether someone holds a lock on a file."""
    try:
        with path.open("r") as file:
            return not try_lock(file)
    except OSError:
        return False


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Be the only runner in a campaign's folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("a+")
    except OSError as error:
        raise CampaignError(
            f"Cannot write to {folder}: {error.strerror or error}. Choose another folder (--out)."
        ) from error
    with file:
        if not try_lock(file):
            file.seek(0)
            raise CampaignError(
                f"{folder} is being run already, by {file.read().strip() or 'another process'}. "
                f"Watch it with: prism campaign status {folder}"
            )
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
