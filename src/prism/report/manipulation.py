"""Runs that learned from demonstrations, as far as a report needs them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism.imitate.config import KIND, ImitationConfig
from prism.imitate.evaluations import SCHEMA
from prism.runs import Run, from_dict, to_dict
from prism.runs.configs import find_differences

_FREE = ("seed", "threads", "device", "demos", "log_every", "checkpoint_every", "keep_checkpoints")
"""Settings in which runs of one arm may differ."""


@dataclass(frozen=True)
class ManipulationRun:
    """One training on demonstrations with its evaluations."""

    name: str
    """The folder as seen from where the report began."""
    config: ImitationConfig
    """How it was trained."""
    episodes: dict[tuple[str, str], list[dict[str, Any]]]
    """Episodes by condition and corrector, all of the newest checkpoint."""

    @property
    def task(self) -> tuple[str, str, str]:
        """Suite, task and preset: what is never mixed."""
        return self.config.task.suite, self.config.task.name, self.config.preset


def collect_manipulation(root: Path) -> tuple[list[ManipulationRun], list[str]]:
    """Read all such runs under a folder, with what was left out and why."""
    found: list[ManipulationRun] = []
    notes: list[str] = []
    for file in sorted(root.rglob("config.json")):
        folder = file.parent
        if any(part.startswith(".") for part in folder.relative_to(root).parts):
            continue
        try:
            data = json.loads(file.read_text())
        except (OSError, ValueError):
            continue
        if not isinstance(data, dict) or data.get("kind") != KIND:
            continue
        name = folder.relative_to(root).as_posix()
        try:
            config = from_dict(ImitationConfig, data, where=f"{name}/config.json")
        except (ValueError, TypeError) as error:
            notes.append(f"{name}: this version of prism cannot read the run: {error}")
            continue
        episodes = _episodes(folder, config, name, notes)
        found.append(ManipulationRun(name, config, episodes))
    return found, notes + _mixtures(found)


def _episodes(
    folder: Path, config: ImitationConfig, name: str, notes: list[str]
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Read the evaluations of a run's last checkpoint."""
    steps = Run(folder, {}).steps()
    if steps and steps[-1] < config.steps:
        notes.append(f"{name}: {steps[-1]} of {config.steps} updates are done; it is left out.")
        return {}
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for file in sorted((folder / "evaluations").glob("*.json")):
        try:
            data = json.loads(file.read_text())
            if data["schema"] != SCHEMA:
                raise ValueError(f"schema {data['schema']}, this prism reads {SCHEMA}")
            if data["checkpoint"] != config.steps:
                raise ValueError(f"it is of update {data['checkpoint']}")
            key = data["condition"]["name"], data["protocol"]["corrector"]
            found[key] += data["episodes"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            notes.append(f"{name}/evaluations/{file.name} is left out: {error}.")
    if not found:
        notes.append(f"{name}: not evaluated yet (prism eval).")
    return dict(found)


def _mixtures(runs: Sequence[ManipulationRun]) -> list[str]:
    """Name arms whose runs differ in more than the seed."""
    notes = []
    first: dict[tuple[str, ...], ManipulationRun] = {}
    for run in runs:
        other = first.setdefault((*run.task, run.config.arm), run)
        changes = find_differences(to_dict(other.config), to_dict(run.config))
        keys = [key for key in changes if key not in _FREE]
        if keys:
            notes.append(
                f"{run.name} and {other.name} are both called {run.config.arm} but differ in "
                f"{', '.join(keys)}; give one another name by --arm."
            )
    return notes


def manipulation_data(runs: Sequence[ManipulationRun]) -> list[dict[str, Any]]:
    """Return all episodes with the runs that they are of."""
    return [
        {
            "folder": run.name,
            "config": to_dict(run.config),
            "evaluations": [
                {"condition": condition, "corrector": corrector, "episodes": rows}
                for (condition, corrector), rows in run.episodes.items()
            ],
        }
        for run in runs
    ]
