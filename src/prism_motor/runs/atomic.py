"""Atomic writes: a file or folder is either complete or absent."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


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
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Make a folder that gets its name once it is complete; an existing one is replaced."""
    temporary = _temporary(path)
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(path) as file:
        file.write(text.encode())


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically; floats keep full precision, NaN is rejected."""
    write_text(path, json.dumps(data, indent=2, allow_nan=False) + "\n")


def sync_folder(path: Path) -> None:
    """Make sure that a rename inside this folder survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")
