"""Verification: whether the files of a run are as they were written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from prism_motor._console import count
from prism_motor.runs.checkpoints import checkpoint_steps, read_marker
from prism_motor.runs.layout import (
    CHECKPOINTS,
    CONFIG,
    DAMAGED,
    EVALUATIONS,
    METRICS,
    PROVENANCE,
    SEAL,
    CheckpointError,
)
from prism_motor.runs.metrics import read_metrics
from prism_motor.runs.seals import Seal, find_changed, is_intact, is_seal


@dataclass
class Verification:
    """What was found about a run folder."""

    intact: list[str] = field(default_factory=list)
    """What is as it was written."""
    unsealed: list[str] = field(default_factory=list)
    """What cannot be told, because nothing seals it, as in runs of earlier versions."""
    problems: list[str] = field(default_factory=list)
    """What is damaged, missing or changed."""

    @property
    def word(self) -> str:
        """The result in a word or two."""
        if self.problems:
            return "changed"
        return "not sealed" if self.unsealed else "intact"


def verify(folder: Path, *, weights: bool = True) -> Verification:
    """Check everything in a run folder that is sealed.

    Args:
        folder: The run folder.
        weights: Whether to read the files of checkpoints, which are large.
    """
    found = Verification()
    steps = checkpoint_steps(folder / CHECKPOINTS)
    if weights:
        _verify_checkpoints(folder, steps, found)
    _verify_files(folder, _newest_seal(folder, steps), found)
    _verify_evaluations(folder, found)
    kept = sorted(file.name for file in folder.glob(f"{DAMAGED}-*"))
    found.problems += [f"{name} is what was left of damaged metrics" for name in kept]
    return found


def _verify_checkpoints(folder: Path, steps: list[int], found: Verification) -> None:
    whole = 0
    for step in steps:
        place = folder / CHECKPOINTS / f"{step:08d}"
        try:
            changed = find_changed(place, read_marker(place).files)
        except CheckpointError as error:
            found.problems.append(str(error))
            continue
        found.problems += [f"{CHECKPOINTS}/{place.name}/{name} has changed" for name in changed]
        whole += not changed
    if whole:
        found.intact.append(count(whole, "checkpoint"))


def _newest_seal(folder: Path, steps: list[int]) -> Seal:
    """Return the newest readable seal of the run's own files; an archive has one to itself."""
    for step in reversed(steps):
        try:
            return read_marker(folder / CHECKPOINTS / f"{step:08d}").run
        except CheckpointError:
            continue
    try:
        seal = json.loads((folder / SEAL).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return seal if is_seal(seal) else {}


def _verify_files(folder: Path, seal: Seal, found: Verification) -> None:
    changed = find_changed(folder, seal)
    found.problems += [f"{name} is missing or has changed" for name in changed]
    for name in (CONFIG, PROVENANCE, METRICS):
        if name in seal and name not in changed:
            found.intact.append(name)
        elif name not in seal and (folder / name).is_file():
            found.unsealed.append(name)
    lines = read_metrics(folder / METRICS).damaged
    if lines and METRICS not in changed:
        found.problems.append(f"{METRICS}: {count(len(lines), 'line')} cannot be read")


def _verify_evaluations(folder: Path, found: Verification) -> None:
    whole = unsealed = 0
    for file in sorted((folder / EVALUATIONS).glob("*.json")):
        try:
            if not file.is_file():
                raise OSError  # opening a pipe would wait for ever
            state = is_intact(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError):
            found.problems.append(f"{EVALUATIONS}/{file.name} cannot be read")
            continue
        if state is False:
            found.problems.append(f"{EVALUATIONS}/{file.name} has changed")
        whole += state is True
        unsealed += state is None
    if whole:
        found.intact.append(count(whole, "evaluation"))
    if unsealed:
        found.unsealed.append(count(unsealed, "evaluation"))
