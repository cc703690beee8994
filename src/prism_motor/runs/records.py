"""Small records of runs for checking published numbers: everything but the weights."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from prism_motor._checks import InputError
from prism_motor.runs.atomic import write_json, write_text
from prism_motor.runs.boundary import Boundary
from prism_motor.runs.folder import Run
from prism_motor.runs.layout import (
    ANALYSIS,
    CAMPAIGN,
    CONFIG,
    DAMAGED,
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


def write_records(root: Path, out: Path) -> tuple[list[str], list[str]]:
    """Write records of all runs at or below a folder, with analyses and tables.

    The tuning runs of campaigns are left out: tuning.json has their scores.

    Args:
        root: A run, a campaign, or any folder of them.
        out: Output folder, with the same tree; existing records are replaced.

    Returns:
        The names of the runs, and notes on what was left out.
    """
    if not root.is_dir():
        raise RunError(f"No such folder: {root}.")
    if out.resolve().is_relative_to(root.resolve()):
        raise RunError(f"Records of {root} cannot be written to {out}, which is inside it.")
    names, boundary = [], Boundary(root)
    for folder, run in walk_runs(root, boundary):  # before anything is written
        if run:
            _check_intact(folder)
    for folder, run in walk_runs(root, boundary):
        target = out / folder.relative_to(root)
        for file in _SUMMARIES:
            if (folder / file).is_file() and not run and boundary.holds(folder / file):
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / file, target / file)
        if run:
            write_record(Run.open(folder), target, boundary=boundary)
            names.append(folder.relative_to(root).as_posix())
        _copy_analyses(folder / ANALYSIS, target / ANALYSIS, boundary)
    if not names:
        raise RunError("\n  ".join([f"No runs found in {root}.", *boundary.notes]))
    return names, boundary.notes


def write_record(
    source: Run, folder: Path, digits: int | None = 6, boundary: Boundary | None = None
) -> None:
    """Write settings, provenance, a learning curve and all evaluated episodes of a run.

    Folders in command lines are removed, because they identify a machine. A run whose files have
    changed is refused, because the record would hide it.

    Args:
        source: The run.
        folder: Output folder, created if missing.
        digits: Significant digits of measured numbers; ``None`` for all.
        boundary: Where the run's files must lie; default: in its folder.
    """
    earlier = _check_intact(source.path)
    edge = boundary or Boundary(source.path)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / CONFIG, source.config)
    rows = source.metrics() if edge.holds(source.path / METRICS) else []
    kept = thin(rows, _ROWS)
    text = "".join(json.dumps(_rounded(row, digits)) + "\n" for row in kept)
    write_text(folder / METRICS, text)
    provenance = source.provenance()
    note = "; ".join([f"{len(kept)} of {len(rows)} rows of metrics", *earlier])
    write_json(folder / PROVENANCE, {**portable(provenance), "kept": note})
    write_json(folder / SEAL, seal_files(folder, (CONFIG, PROVENANCE, METRICS)))
    for file in sorted(filter(edge.holds, (source.path / EVALUATIONS).glob("*.json"))):
        data = _read(file)
        if not isinstance(data.get("provenance"), dict) or "episodes" not in data:
            raise RunError(f"{file} is not an evaluation. Repeat it with prism eval --again.")
        data["provenance"] = portable(data["provenance"])
        data["episodes"] = _rounded(data["episodes"], digits)
        if SEALED in data:  # rounding changes the data
            data = seal_data(data)
        (folder / EVALUATIONS).mkdir(exist_ok=True)
        line = json.dumps(data, separators=(",", ":"))
        write_text(folder / EVALUATIONS / file.name, line + "\n")


def _check_intact(run: Path) -> list[str]:
    """Raise if a run is not as it was written; return what is known about damage in its past."""
    problems = verify(run, weights=False).problems
    past = [problem for problem in problems if problem.startswith(DAMAGED)]
    if present := [problem for problem in problems if problem not in past]:
        raise RunError(
            f"{run} is not as it was written: {'; '.join(present)}. Restore it, or move it away."
        )
    return past


def thin(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return about ``count`` evenly spaced rows, including the first and the last."""
    if len(rows) <= count:
        return rows
    last = len(rows) - 1
    return [rows[round(i * last / (count - 1))] for i in range(count)]


def portable(provenance: dict[str, Any]) -> dict[str, Any]:
    """Reduce every path in the command line to its last part."""
    words = provenance.get("command")
    if not isinstance(words, list):
        return {key: value for key, value in provenance.items() if key != "command"}
    command = [re.sub(r"[^=]*[/\\]", "", str(word).rstrip("/\\")) for word in words]
    return {**provenance, "command": command}


def _read(file: Path) -> dict[str, Any]:
    """Return the object in a file, without numbers that JSON does not have."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"), parse_constant=_no_number)
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{file} is damaged: {error}.") from error
    if not isinstance(data, dict):
        raise RunError(f"{file} is damaged: it holds no object.")
    return data


def _no_number(word: str) -> None:
    raise InputError(f"it holds {word}, which is no number")


def _copy_analyses(source: Path, target: Path, boundary: Boundary) -> None:
    for file in sorted(source.rglob("*")) if boundary.holds(source) else ():
        if boundary.holds(file) and file.suffix in _ANALYSES and file.is_file():
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
