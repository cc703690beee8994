"""Finds run folders and reads what they hold, without loading any weights."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prism_motor._errors import InputError
from prism_motor.locomotion.config import TrainConfig
from prism_motor.locomotion.evaluation import WalkingEpisode as Episode
from prism_motor.report.records import Collection, Evaluation, Plan, RunRecord
from prism_motor.runs import Run, RunError, from_dict, to_dict
from prism_motor.runs.checkpoints import SCHEMA as CHECKPOINT_SCHEMA
from prism_motor.train.walking_evaluations import SCHEMA as EVALUATION_SCHEMA

CAMPAIGN, TUNING = "campaign.json", "tuning"
"""Record of a campaign; its folder of runs that chose settings, which are never reported."""

_RUN_KEYS = {"preset", "arm", "task", "actor"}
"""What tells the config.json of a training run from other files of that name."""


def collect(root: str | Path) -> Collection:
    """Read all run folders at or under a folder.

    Args:
        root: The folder; may be a run itself.
    """
    folder = Path(root)
    if not folder.is_dir():
        raise RunError(f"There is no folder {folder}.")
    runs: list[RunRecord] = []
    problems: list[str] = []
    plans: list[Plan] = []
    for place in _folders(folder):
        if (place / CAMPAIGN).is_file():
            plans += _read_plan(place, problems)
        name = place.relative_to(folder).as_posix()
        try:
            run = _read_run(place, folder.resolve().name if name == "." else name)
        except RunError as error:
            problems.append(str(error))
            continue
        if run is not None:
            runs.append(run)
            problems += run.notes
    problems += [note for plan in plans if (note := plan.note(runs))]
    return Collection(folder, tuple(runs), tuple(problems), tuple(plans))


def _folders(root: Path) -> Iterator[Path]:
    """Walk from a folder down, not into runs, hidden folders and the tuning of campaigns."""
    for place, inner, files in os.walk(root):
        if "config.json" in files and (_run_config(Path(place)) or "metrics.jsonl" in files):
            inner.clear()
        hidden = [name for name in inner if name.startswith(".")]
        skipped = {*hidden, TUNING} if CAMPAIGN in files else {*hidden}
        inner[:] = sorted(name for name in inner if name not in skipped)
        yield Path(place)


def _run_config(folder: Path) -> dict[str, Any] | None:
    """Return config.json if it is one of a training run."""
    try:
        data = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.keys() >= _RUN_KEYS else None


def _read_plan(folder: Path, problems: list[str]) -> list[Plan]:
    data = read_json(folder / CAMPAIGN) or {}
    if data.get("kind") == "manipulation":
        return []  # see prism_motor.report.manipulation
    try:
        seeds = {arm["name"]: tuple(map(int, data["seeds"])) for arm in data["arms"]}
        return [Plan(folder, seeds, max(1, len(data.get("variants") or ())))]
    except (KeyError, TypeError, ValueError):
        problems.append(f"{folder / CAMPAIGN} is not the record of a campaign.")
        return []


def _read_run(folder: Path, name: str) -> RunRecord | None:
    data = _run_config(folder)
    if data is None:
        if (read_json(folder / "config.json") or {}).get("kind") == "manipulation":
            return None  # see prism_motor.report.manipulation
        if (folder / "config.json").is_file() and (folder / "metrics.jsonl").is_file():
            raise RunError(f"{name}: config.json is damaged or not that of a locomotion run.")
        return None
    provenance = read_json(folder / "provenance.json") or {}
    try:
        config = from_dict(TrainConfig, data, where=f"{name}/config.json")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        version = provenance.get("prism")
        made = f" It was made by prism {version}." if version else ""
        raise RunError(f"{name}: this version of prism cannot read the run: {error}{made}") from (
            error
        )
    run = Run(folder, data)
    notes: list[str] = []
    found = _read_evaluations(folder, name, notes)
    metrics = tuple(row for row in run.metrics() if isinstance(row, dict) and "iteration" in row)
    steps = run.steps()
    updates = steps[-1] if steps else max([0, *(e.checkpoint for e in found)])
    if not steps and not found and metrics:
        updates = int(metrics[-1]["iteration"])
    if not steps:
        notes.append(f"{name}: no complete checkpoint in the folder.")
    return RunRecord(
        path=folder,
        name=name,
        config=config,
        config_sha256=config_hash(config),
        provenance=provenance,
        updates=updates,
        checkpoint_sha256=checkpoint_hash(folder, updates, name, notes) if steps else None,
        metrics=metrics,
        evaluations=_of_newest(found, updates, name, notes),
        notes=tuple(notes),
    )


def _read_evaluations(folder: Path, name: str, notes: list[str]) -> list[Evaluation]:
    found = []
    for file in sorted((folder / "evaluations").glob("*.json")):
        data = read_json(file)
        try:
            if data is None:
                raise InputError("no readable JSON")
            if data["schema"] != EVALUATION_SCHEMA:
                raise InputError(f"schema {data['schema']}, this prism reads {EVALUATION_SCHEMA}")
            fields = Episode.__dataclass_fields__
            rows = tuple(Episode(**{f: row[f] for f in fields}) for row in data["episodes"])
            if not rows:
                raise InputError("no episodes")
            found.append(
                Evaluation(
                    condition=data["condition"]["name"],
                    seed=data["evaluation_seed"],
                    checkpoint=data["checkpoint"],
                    policy_sha256=data["policy_sha256"],
                    protocol=data["protocol"],
                    episodes=rows,
                )
            )
        except (ValueError, KeyError, TypeError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            notes.append(f"{name}/evaluations/{file.name} is left out: {why}.")
    return found


def _of_newest(
    found: list[Evaluation], updates: int, name: str, notes: list[str]
) -> tuple[Evaluation, ...]:
    """Keep the evaluations of the newest checkpoint, all of the same weights."""
    kept = [one for one in found if one.checkpoint == updates]
    notes += [
        f"{name}: {one.condition}, seed {one.seed}, was evaluated after {one.checkpoint} updates "
        f"and is left out, because the run has {updates}."
        for one in found
        if one.checkpoint != updates
    ]
    hashes = {one.policy_sha256 for one in kept}
    if len(hashes) > 1:
        notes.append(
            f"{name}: its evaluations are of {len(hashes)} different policies and are left out. "
            "Repeat them with prism eval --again."
        )
        return ()
    return tuple(kept)


def config_hash(config: Any) -> str:
    """Return the SHA-256 of resolved settings."""
    return hashlib.sha256(json.dumps(to_dict(config), sort_keys=True).encode()).hexdigest()


def checkpoint_hash(folder: Path, step: int, name: str, notes: list[str]) -> str | None:
    """Return the SHA-256 of a checkpoint's tensors, as its marker has it."""
    marker = read_json(folder / "checkpoints" / f"{step:08d}" / "complete.json") or {}
    if marker.get("schema") != CHECKPOINT_SCHEMA:
        notes.append(
            f"{name}: checkpoint {step} has layout version {marker.get('schema')}, this prism "
            f"reads {CHECKPOINT_SCHEMA}."
        )
    return marker.get("files", {}).get("tensors.safetensors", {}).get("sha256")


def read_json(file: Path) -> dict[str, Any] | None:
    """Return an object from a file, ``None`` if there is none that can be read."""
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None
