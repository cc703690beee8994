"""Seals: hashes that show whether the files of a run are as they were written.

A checkpoint's marker seals its own files, the run's settings and provenance, and the metrics so
far; a stored evaluation seals itself. This protects against damage and forgotten edits, not against
somebody who computes the hashes anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prism_motor.runs.layout import METRICS

Seal = dict[str, dict[str, Any]]
"""Size and SHA-256 by file name."""

SEALED = "sha256"
"""Key of the hash in data that seals itself."""


def fingerprint(path: Path, size: int | None = None) -> dict[str, Any]:
    """Return size and SHA-256 of a file, or of its first ``size`` bytes."""
    digest, count = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(1 << 20 if size is None else min(1 << 20, size - count)):
            digest.update(block)
            count += len(block)
    return {"bytes": count, "sha256": digest.hexdigest()}


def seal_files(folder: Path, names: Iterable[str]) -> Seal:
    """Return the seal of those of the named files that exist."""
    return {name: fingerprint(folder / name) for name in names if (folder / name).is_file()}


def is_seal(data: Any, names: Iterable[str] = ()) -> bool:
    """Return whether data read from a file is a seal that covers at least these names."""
    return (
        isinstance(data, dict)
        and all(
            isinstance(entry, dict)
            and isinstance(entry.get("bytes"), int)
            and isinstance(entry.get("sha256"), str)
            for entry in data.values()
        )
        and set(names) <= set(data)
    )


def find_changed(folder: Path, seal: Seal) -> list[str]:
    """Return the names of sealed files that are missing or not as they were.

    Metrics may have grown since.
    """

    def is_whole(name: str, expected: Mapping[str, Any]) -> bool:
        file = folder / name
        if not file.is_file():
            return False
        limit = expected["bytes"] if name == METRICS else None
        return fingerprint(file, limit) == {key: expected[key] for key in ("bytes", "sha256")}

    return [name for name, expected in seal.items() if not is_whole(name, expected)]


def seal_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data with its own hash, for a file that is replaced as a whole."""
    return {**data, SEALED: _hash(data)}


def is_intact(data: Any) -> bool | None:
    """Return whether data is as :func:`seal_data` made it; ``None`` without a hash."""
    if not isinstance(data, dict):
        return False
    return data[SEALED] == _hash(data) if SEALED in data else None


def _hash(data: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in data.items() if key != SEALED}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
