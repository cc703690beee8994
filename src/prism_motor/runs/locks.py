"""Locks: one owner of a folder or file at a time, released by the system however the owner ends.

A lock is a file that its owner locks with flock, so even kill -9 releases it. Some network file
systems keep such locks to one machine, or have none. The file therefore also names its owner, who
touches it every few seconds: an owner on another machine counts as alive while it does.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import weakref
from pathlib import Path
from typing import IO, Any

from prism_motor.runs.layout import RunError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_BEAT = 10.0
"""Seconds between signs of life."""
_SILENCE = 45.0
"""Seconds without a sign of life after which an owner on another machine counts as gone."""


class LockedError(RunError):
    """Another process owns what this one needs."""


def try_lock(file: IO[Any]) -> bool | None:
    """Lock a file for as long as anyone has it open.

    Returns:
        Whether that succeeded; ``None`` if the file system has no locks.
    """
    if fcntl is None:  # Windows
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        taken = error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
        return False if taken else None
    return True


class Lock:
    """Exclusive ownership of something, as a context manager or by its two methods.

    Args:
        path: The lock's file, which exists while somebody owns it.
        refusal: Message for those who come second, with ``{owner}``.
    """

    def __init__(self, path: Path, refusal: str) -> None:
        self.path, self.refusal = path, refusal
        self._file: IO[str] | None = None
        self._released = threading.Event()

    @property
    def held(self) -> bool:
        """Whether this object owns it."""
        return self._file is not None

    def acquire(self) -> Lock:
        """Become the owner, or raise if somebody else is; without effect for the owner.

        Windows has no such locks, and no harmless way to ask whether a process is alive.
        """
        if fcntl is None or self.held:
            return self
        while self._file is None:
            file = self.path.open("a+", encoding="utf-8")
            locked = try_lock(file)
            # A former owner may have removed the file between opening and locking it.
            if locked and not _is_named(file, self.path):
                file.close()
                continue
            owner = _read_owner(file)
            if locked is False or (owner and _is_alive(owner, self.path, locked)):
                file.close()
                raise LockedError(self.refusal.format(owner=_describe(owner)))
            file.truncate(0)
            json.dump({"process": os.getpid(), "host": socket.gethostname()}, file)
            file.flush()
            self._file = file
        self._released = threading.Event()
        beat = threading.Thread(target=_beat, args=(self.path, self._released), daemon=True)
        beat.start()
        weakref.finalize(self, self._released.set)
        return self

    def check(self) -> None:
        """Raise if somebody else is the owner."""
        if self.path.exists() and not self.held:
            self.acquire().release()

    def release(self) -> None:
        """Give it up; without effect for others than the owner."""
        if self._file is not None:
            self._released.set()
            self.path.unlink(missing_ok=True)
            self._file.close()
            self._file = None

    def __enter__(self) -> Lock:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def _is_named(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _read_owner(file: IO[str]) -> dict[str, Any] | None:
    file.seek(0)
    try:
        owner = json.loads(file.read())
        return {"process": int(owner["process"]), "host": str(owner["host"])}
    except (ValueError, KeyError, TypeError):
        return None


def _describe(owner: dict[str, Any] | None) -> str:
    return f"process {owner['process']} on {owner['host']}" if owner else "another process"


def _is_alive(owner: dict[str, Any], path: Path, locked: bool | None) -> bool:
    """Return whether an owner that this machine's locks do not show is still there."""
    if owner["host"] == socket.gethostname():
        return locked is None and _exists(owner["process"])
    # Compare times of the file system itself, because clocks of machines differ.
    probe = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        probe.touch()
        return probe.stat().st_mtime - path.stat().st_mtime < _SILENCE
    finally:
        probe.unlink(missing_ok=True)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _beat(path: Path, released: threading.Event) -> None:
    """Touch a lock's file until it is released."""
    while not released.wait(_BEAT):
        try:
            os.utime(path)
        except OSError:  # the folder was moved or the network is down; the lock itself holds
            continue
