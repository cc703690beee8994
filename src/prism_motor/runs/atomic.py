"""Atomic writes: a file or folder is either complete and on disk, or absent."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

_TEMPORARY = re.compile(r"\.(.+)\.\d+\.tmp")
"""Names of what is not complete yet, or about to be deleted."""


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that gets its name once it is complete and on disk."""
    temporary = _temporary(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Make a folder that gets its name once it is complete and on disk, replacing an older one."""
    temporary = _temporary(path)
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for entry in (*temporary.rglob("*"), temporary):
            _sync(entry)
        remove_folder(path)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Delete a folder, if it exists; it loses its name first, so that no part of it remains."""
    if path.is_dir():
        unnamed = _temporary(path.with_name(f"{path.name}.old"))
        shutil.rmtree(unnamed, ignore_errors=True)
        path.replace(unnamed)
        shutil.rmtree(unnamed, ignore_errors=True)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Delete what interrupted writes left in a folder; only the owner may do this.

    Args:
        folder: The folder.
        name: What was being written; default: anything.
    """
    for entry in folder.iterdir() if folder.is_dir() else ():
        found = _TEMPORARY.fullmatch(entry.name)
        if found and name in (None, found[1]):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(path) as file:
        file.write(text.encode())


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically; floats keep full precision, NaN is rejected."""
    write_text(path, json.dumps(data, indent=2, allow_nan=False) + "\n")


def _sync(path: Path) -> None:
    """Make sure that the contents of a file, or the names in a folder, survive a power cut."""
    if os.name == "nt" and path.is_dir():  # Windows cannot, and does not need to
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")
