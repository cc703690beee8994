"""Unpacking archives that come from elsewhere: files and folders, inside one folder, no more."""

from __future__ import annotations

import errno
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from prism_motor._checks import InputError

LARGEST = 20_000_000_000
"""Bytes that an archive may unpack to; LIBERO's assets have less than a gigabyte."""
_MOST = 1_000_000
"""Number of files that an archive may have."""
_NO_FILE = "is a link or a device, not a file"


@dataclass(frozen=True)
class _Entry:
    """A file or a folder in an archive."""

    name: str
    """Path in the archive."""
    size: int
    """Bytes when unpacked."""
    problem: str
    """Why it cannot be unpacked; empty if it can."""
    read: Callable[[], IO[bytes] | None] | None
    """Opens its contents; ``None`` for a folder."""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .tar, .tar.gz, .tar.xz or .zip file into a folder.

    Links are refused rather than checked: a file that is unpacked later could be written through
    one.
    """
    room = min(LARGEST, shutil.disk_usage(folder).free)
    try:
        for count, entry in enumerate(_entries(archive)):
            room -= entry.size
            if room < 0 or count >= _MOST:
                raise InputError(f"{archive} unpacks to more than this disk or prism takes.")
            if problem := entry.problem or _name_problem(entry.name):
                raise InputError(f"{archive} is not unpacked: {entry.name!r} in it {problem}.")
            _write(entry, folder / entry.name)
    except (InputError, MemoryError):
        raise
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # of this machine, such as a full disk
            raise
        raise _not_whole(archive, error) from error
    except Exception as error:  # damaged archives raise nearly anything
        raise _not_whole(archive, error) from error


def _entries(archive: Path) -> Iterator[_Entry]:
    """Yield what is in an archive; nothing of it is read ahead."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                read = None if info.is_dir() else partial(opened.open, info)
                yield _Entry(info.filename, info.file_size, _zip_problem(info), read)
    else:
        with tarfile.open(archive) as opened:
            for member in opened:
                read = None if member.isdir() else partial(opened.extractfile, member)
                problem = "" if member.isreg() or member.isdir() else _NO_FILE
                yield _Entry(member.name, member.size, problem, read)


def _zip_problem(info: zipfile.ZipInfo) -> str:
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return _NO_FILE
    return "is encrypted; unpack it and give the folder" if info.flag_bits & 1 else ""


def _name_problem(name: str) -> str:
    """Return why a name would lead out of the folder, on any system."""
    path, windows = PurePosixPath(name), PureWindowsPath(name)
    if windows.drive or windows.root or path.is_absolute() or ".." in windows.parts:
        return "has a path that leads out of its folder"
    return ""


def _write(entry: _Entry, target: Path) -> None:
    (target if entry.read is None else target.parent).mkdir(parents=True, exist_ok=True)
    if entry.read is None:
        return
    contents = entry.read()
    if contents is None:
        raise tarfile.ReadError(f"{entry.name} has no contents")
    with contents, target.open("wb") as copy:
        shutil.copyfileobj(contents, copy)
    if target.stat().st_size != entry.size:
        raise tarfile.ReadError(f"{entry.name} ends too early")


def _not_whole(archive: Path, error: Exception) -> InputError:
    reason = str(error).partition("\n")[0].rstrip(":.") or type(error).__name__
    return InputError(
        f"{archive} is not a complete archive (.tar, .tar.gz, .tar.xz or .zip): {reason}."
    )
