"""The metrics of a run: one JSON object a line, appended and cut back, never lost silently."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from prism_motor.runs.atomic import atomic_file
from prism_motor.runs.layout import DAMAGED, METRICS
from prism_motor.runs.seals import Seal, find_changed


@dataclass(frozen=True)
class MetricsFile:
    """What a metrics file holds."""

    rows: list[dict[str, Any]]
    """The readable rows, in order."""
    lines: list[bytes]
    """Their lines, with line ends."""
    damaged: list[int]
    """Numbers of the lines that are no rows, from 1; a last line that was cut does not count."""


def read_metrics(file: Path) -> MetricsFile:
    """Read metrics; a missing file has no rows."""
    found = MetricsFile([], [], [])
    whole = file.read_bytes().splitlines(keepends=True) if file.is_file() else []
    for number, line in enumerate(whole, start=1):
        try:
            row = json.loads(line)
            if "iteration" in row:  # former name of updates
                row = {"update": row.pop("iteration"), **row}
            if type(row["update"]) is not int:
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if line.endswith(b"\n"):
                found.damaged.append(number)
            continue
        found.rows.append(row)
        found.lines.append(line if line.endswith(b"\n") else line + b"\n")
    return found


def rewind(folder: Path, step: int, sealed: Seal) -> str | None:
    """Cut the metrics back to a checkpoint, before a run resumes from there.

    Args:
        folder: The run folder.
        step: Number of updates of the checkpoint.
        sealed: The checkpoint's seal of the run's files.

    Returns:
        What was found to be damaged, if anything; the damaged file is then kept beside the new one.
    """
    file = folder / METRICS
    found = read_metrics(file)
    seal = {name: entry for name, entry in sealed.items() if name == METRICS}
    problem = None
    if find_changed(folder, seal):
        problem = f"{file} is missing or was changed after it was written"
    elif found.damaged:
        problem = f"{file}: {_describe(found.damaged)} cannot be read"
    if problem is not None and file.exists():
        kept = file.with_name(f"{DAMAGED}-{step:08d}{file.suffix}")
        file.replace(kept)
        problem += f". It is kept as {kept.name}; the readable rows go on in {METRICS}"
    rows = zip(found.rows, found.lines, strict=True)
    with atomic_file(file) as target:
        target.write(b"".join(line for row, line in rows if row["update"] <= step))
    return problem


def _describe(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    return f"{len(lines)} lines, the first of them line {lines[0]},"


class MetricsLog:
    """Appends rows to a run's metrics.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / METRICS
        self._file: TextIO | None = None

    def write(self, row: dict[str, Any]) -> None:
        """Append one row."""
        if self._file is None:
            self._file = self._path.open("a", encoding="utf-8")
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def sync(self) -> None:
        """Make sure that all rows are on disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; another row opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
