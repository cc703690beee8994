"""Small records of runs for checking published numbers: everything but the weights."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from prism_motor.runs.atomic import write_json, write_text
from prism_motor.runs.folder import Run
from prism_motor.runs.layout import (
    ANALYSIS,
    CAMPAIGN,
    CONFIG,
    EVALUATIONS,
    METRICS,
    PROVENANCE,
    REPORT,
    SEAL,
    TUNING,
    RunError,
    walk_runs,
)
from prism_motor.runs.seals import SEALED, seal_data, seal_files
from prism_motor.runs.verification import verify

_ROWS = 200
"""Number of rows of metrics to keep."""

_SUMMARIES = (CAMPAIGN, TUNING, f"{REPORT}.md")
"""Files to keep from the folders around runs."""

_ANALYSES = {".json", ".md", ".png", ".svg"}
"""File types to keep from analyses."""


def write_records(root: Path, out: Path) -> list[str]:
    """Write records of all runs at or below a folder, with analyses and tables.

    The tuning runs of campaigns are left out: tuning.json has their scores.

    Args:
        root: A run, a campaign, or any folder of them.
        out: Output folder, with the same tree; existing records are replaced.

    Returns:
        The names of the runs.
    """
    if not root.is_dir():
        raise RunError(f"No such folder: {root}.")
    if out.resolve().is_relative_to(root.resolve()):
        raise RunError(f"Records of {root} cannot be written to {out}, which is inside it.")
    names = []
    for folder, run in walk_runs(root):
        target = out / folder.relative_to(root)
        for file in _SUMMARIES:
            if (folder / file).is_file() and not run:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / file, target / file)
        if run:
            write_record(Run.open(folder), target)
            names.append(folder.relative_to(root).as_posix())
        _copy_analyses(folder / ANALYSIS, target / ANALYSIS)
    if not names:
        raise RunError(f"No runs found in {root}.")
    return names


def write_record(source: Run, folder: Path, digits: int | None = 6) -> None:
    """Write settings, provenance, a learning curve and all evaluated episodes of a run.

    Folders in command lines are removed, because they identify a machine. A run whose files have
    changed is refused, because the record would hide it.

    Args:
        source: The run.
        folder: Output folder, created if missing.
        digits: Significant digits of measured numbers; ``None`` for all.
    """
    if problems := verify(source.path, weights=False).problems:
        raise RunError(f"{source.path} is not as it was written: {'; '.join(problems)}.")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / CONFIG, source.config)
    rows = source.metrics()
    kept = thin(rows, _ROWS)
    text = "".join(json.dumps(_rounded(row, digits)) + "\n" for row in kept)
    write_text(folder / METRICS, text)
    provenance = _read(source.path / PROVENANCE)
    note = f"{len(kept)} of {len(rows)} rows of metrics"
    write_json(folder / PROVENANCE, {**portable(provenance), "kept": note})
    write_json(folder / SEAL, seal_files(folder, (CONFIG, PROVENANCE, METRICS)))
    for file in sorted((source.path / EVALUATIONS).glob("*.json")):
        data = _read(file)
        if "provenance" not in data or "episodes" not in data:
            raise RunError(f"{file} is not an evaluation. Move it away.")
        data["provenance"] = portable(data["provenance"])
        data["episodes"] = _rounded(data["episodes"], digits)
        if SEALED in data:  # rounding changes the data
            data = seal_data(data)
        (folder / EVALUATIONS).mkdir(exist_ok=True)
        line = json.dumps(data, separators=(",", ":"), allow_nan=False)
        write_text(folder / EVALUATIONS / file.name, line + "\n")


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{file} cannot be read: {error}.") from error
    if not isinstance(data, dict):
        raise RunError(f"{file} should hold a table, not {type(data).__name__}.")
    return data


def thin(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return about ``count`` evenly spaced rows, including the first and the last."""
    if len(rows) <= count:
        return rows
    last = len(rows) - 1
    return [rows[round(i * last / (count - 1))] for i in range(count)]


def portable(provenance: dict[str, Any]) -> dict[str, Any]:
    """Reduce every path in the command line to its last part."""
    words = provenance.get("command", [])
    command = [re.sub(r"[^=]*[/\\]", "", str(word).rstrip("/\\")) for word in words]
    return {**provenance, "command": command}


def _copy_analyses(source: Path, target: Path) -> None:
    for file in sorted(source.rglob("*")):
        if file.suffix in _ANALYSES:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def _rounded(data: Any, digits: int | None) -> Any:
    if isinstance(data, dict):
        return {key: _rounded(value, digits) for key, value in data.items()}
    if isinstance(data, list):
        return [_rounded(value, digits) for value in data]
    if isinstance(data, float) and digits is not None:
        return float(f"{data:.{digits}g}")
    return data
