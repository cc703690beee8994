"""Stops a process at one of its file operations, as a kill, a power cut or a full disk does.

Operations are counted from one, below one folder: opening for writing, every write that reaches the
system, fsync, rename, remove, and making and removing folders. What happens at the chosen one:

``kill``   the process is killed before it
``torn``   it is a write, half of its bytes arrive, and the process is killed
``power``  as kill, and what was not synced is lost from every file, however it is called by now
``full``   no space is left: it fails, and so does every later operation that needs space
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WAYS = ("kill", "torn", "power", "full")

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NEEDS_SPACE = ("open", "write", "mkdir", "fsync")
_FOLDER_ARGUMENT = {"os.remove": 1, "os.rmdir": 1, "os.mkdir": 2}
"""Events with a path, and where they keep the folder that the path is relative to."""


@dataclass(frozen=True)
class Stop:
    """Where and how a process is stopped."""

    folder: str
    """Operations below this folder count."""
    number: int = 0
    """Number of the operation; 0 only counts."""
    way: str = "kill"
    """One of :data:`WAYS`."""


def suits(way: str, operation: str) -> bool:
    """Return whether an operation, as listed by :class:`Operations`, can be stopped in this way."""
    kind = operation.partition(" ")[0]
    if way == "torn":
        return kind == "write"
    return way != "full" or kind in _NEEDS_SPACE


class Operations:
    """Counts the file operations of this process, and stops it at one; see :class:`Stop`.

    Attributes:
        seen: Kind and path of every operation so far.
    """

    def __init__(self, stop: Stop) -> None:
        self.stop, self.seen = stop, list[str]()
        self.root = os.path.abspath(stop.folder)
        self.durable = {(found.st_dev, found.st_ino): found.st_size for _, found in self._files()}
        self.active = False

    def install(self) -> None:
        """Watch this process from now on; there is no way back."""
        self.active = True
        sys.addaudithook(self._hear)
        builtins.open = io.open = self._opener(io.open)
        os.fsync = self._syncer(os.fsync)
        os.write = self._writer(os.write)

    def note(self, kind: str, path: str, tear: Callable[[], object] | None = None) -> None:
        """Count one operation, and stop if it is the one."""
        if not self.active:
            return
        self.seen.append(f"{kind} {os.path.relpath(path, self.root)}")
        number, way = self.stop.number, self.stop.way
        if not number or len(self.seen) < number:
            return
        if way == "full":
            if len(self.seen) == number or kind in _NEEDS_SPACE[:3]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return
        self.active = False
        if way == "torn" and tear is not None:
            tear()
        if way == "power":
            self._lose_unsynced()
        os.kill(os.getpid(), signal.SIGKILL)

    def covers(self, path: str) -> bool:
        """Return whether operations on a path count; those of TensorBoard's thread do not."""
        inside = path == self.root or path.startswith(self.root + os.sep)
        return inside and f"{os.sep}tensorboard" not in path[len(self.root) :]

    def _files(self) -> list[tuple[str, os.stat_result]]:
        found = [path for path in Path(self.root).rglob("*") if path.is_file()]
        return [(str(path), path.stat()) for path in found if self.covers(str(path))]

    def _lose_unsynced(self) -> None:
        for path, found in self._files():
            kept = self.durable.get((found.st_dev, found.st_ino), 0)
            if kept < found.st_size:
                os.truncate(path, kept)

    def _forget(self, path: str) -> None:
        """A file is gone; its number may soon be another's."""
        try:
            found = os.stat(path)
        except OSError:
            return
        self.durable.pop((found.st_dev, found.st_ino), None)

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            path, _, flags = given
            if isinstance(path, int) or not flags & _WRITING:
                return
            where = _absolute(path)
            if self.covers(where):
                self.note("open", where)
                if flags & os.O_TRUNC:
                    self._forget(where)
        elif event == "os.rename":
            source, target = _absolute(given[0], given[2]), _absolute(given[1], given[3])
            if self.covers(source) or self.covers(target):
                self.note("rename", target)
                self._forget(target)
        elif event in _FOLDER_ARGUMENT:
            where = _absolute(given[0], given[_FOLDER_ARGUMENT[event]])
            if self.covers(where):
                self.note(event.removeprefix("os."), where)
                if event == "os.remove":
                    self._forget(where)

    def _opener(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            ours = not isinstance(file, int) and opener is None and set("wax+") & set(mode)
            if not self.active or not ours or not self.covers(_absolute(file)):
                return real(file, mode, buffering, encoding, errors, newline, closefd, opener)
            raw = _Watched(file, mode, self)
            buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffer if "b" in mode else io.TextIOWrapper(buffer, encoding, errors, newline)

        return opened

    def _syncer(self, real: Callable[[int], None]) -> Callable[[Any], None]:
        def synced(descriptor: Any) -> None:
            number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
            where = _path_of(number)
            if self.active and self.covers(where):
                self.note("fsync", where)
                found = os.fstat(number)
                self.durable[found.st_dev, found.st_ino] = found.st_size
            real(number)

        return synced

    def _writer(self, real: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
        def written(descriptor: int, data: Any) -> int:
            where = _path_of(descriptor)
            if self.active and self.covers(where):
                half = memoryview(data)[: len(data) // 2]
                self.note("write", where, lambda: real(descriptor, half))
            return real(descriptor, data)

        return written


class _Watched(io.FileIO):
    """A file whose writes are counted."""

    def __init__(self, file: Any, mode: str, operations: Operations) -> None:
        self.operations, self.where = operations, _absolute(file)
        super().__init__(file, mode.replace("b", "").replace("t", ""))

    def write(self, data: Any) -> int:
        half = memoryview(data)[: len(data) // 2]
        self.operations.note("write", self.where, lambda: super(_Watched, self).write(half))
        return super().write(data)


def _absolute(path: Any, folder: int = -1) -> str:
    start = _path_of(folder) if folder >= 0 else ""
    return os.path.abspath(os.path.join(start, os.fsdecode(path)))


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""
