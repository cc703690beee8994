"""Runs that learned from demonstrations, as far as a report needs them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from prism_motor._errors import InputError
from prism_motor.manipulation.config import KIND, ImitationConfig
from prism_motor.report.cells import Cell, Table, blank
from prism_motor.report.reading import CAMPAIGN, checkpoint_hash, config_hash, read_json
from prism_motor.report.run_tables import Origin, make_provenance_table
from prism_motor.runs import Run, from_dict, to_dict
from prism_motor.runs.configs import find_differences
from prism_motor.train.handling_evaluations import SCHEMA

_FREE = ("seed", "threads", "device", "demos", "log_every", "checkpoint_every", "keep_checkpoints")
"""Settings in which runs of one arm may differ."""


class Execution(NamedTuple):
    """How a policy was run; what differs in it is never mixed."""

    corrector: str = "none"
    """What changed its actions."""
    stiffness: float | None = None
    """Kp of the arm's controller, if it was not the suite's own."""

    def label(self, arm: str) -> str:
        """Return what an arm is called that was run like this."""
        name = arm if self.corrector == "none" else f"{arm} + {self.corrector}"
        return name if self.stiffness is None else f"{name}, Kp {self.stiffness:g}"


@dataclass(frozen=True)
class Evaluated:
    """One file of evaluations/."""

    condition: str
    """Name of the perturbation."""
    execution: Execution
    """How the policy was run."""
    seed: int
    """Evaluation seed."""
    policy_sha256: str
    """Hash of the policy's weights."""
    episodes: tuple[dict[str, Any], ...]
    """Every episode."""


@dataclass(frozen=True)
class ManipulationRun:
    """One training on demonstrations with its evaluations."""

    path: Path
    """The folder."""
    name: str
    """The folder as seen from where the report began."""
    config: ImitationConfig
    """How it was trained."""
    provenance: dict[str, Any]
    """Code version, packages, machine and command."""
    checkpoint_sha256: str | None
    """Hash of the last checkpoint's tensors; ``None`` if the folder has none."""
    evaluations: tuple[Evaluated, ...]
    """Those of the last checkpoint."""

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
        data = read_json(file) or {}
        if data.get("kind") != KIND:
            continue
        name = folder.relative_to(root).as_posix()
        name = root.resolve().name if name == "." else name
        try:
            config = from_dict(ImitationConfig, data, where=f"{name}/config.json")
        except (ValueError, TypeError) as error:
            notes.append(f"{name}: this version of prism cannot read the run: {error}")
            continue
        provenance = read_json(folder / "provenance.json") or {}
        digest = None
        if Run(folder, {}).steps():
            digest = checkpoint_hash(folder, config.steps, name, notes)
        evaluations = tuple(_evaluations(folder, config, name, notes))
        found.append(ManipulationRun(folder, name, config, provenance, digest, evaluations))
    return found, notes + _mixtures(found) + _unlike(found) + _not_begun(root, found)


def _evaluations(
    folder: Path, config: ImitationConfig, name: str, notes: list[str]
) -> list[Evaluated]:
    """Read the evaluations of a run's last checkpoint."""
    steps = Run(folder, {}).steps()
    if steps and steps[-1] < config.steps:
        notes.append(f"{name}: {steps[-1]} of {config.steps} updates are done; it is left out.")
        return []
    found = []
    for file in sorted((folder / "evaluations").glob("*.json")):
        try:
            data = json.loads(file.read_text())
            if data["schema"] != SCHEMA:
                raise InputError(f"schema {data['schema']}, this prism reads {SCHEMA}")
            if data["checkpoint"] != config.steps:
                raise InputError(f"it is of update {data['checkpoint']}")
            protocol = data["protocol"]
            found.append(
                Evaluated(
                    data["condition"]["name"],
                    Execution(protocol["corrector"], protocol.get("stiffness")),
                    data["evaluation_seed"],
                    data["policy_sha256"],
                    tuple(data["episodes"]),
                )
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            notes.append(f"{name}/evaluations/{file.name} is left out: {why}.")
    if len({one.policy_sha256 for one in found}) > 1:
        notes.append(
            f"{name}: its evaluations are of different policies and are left out. Repeat them with "
            "prism eval --again."
        )
        return []
    if not found:
        notes.append(f"{name}: not evaluated yet (prism eval).")
    return found


def _not_begun(root: Path, runs: Sequence[ManipulationRun]) -> list[str]:
    """Say how many runs campaigns have begun, unless all have."""
    notes = []
    for file in sorted(root.rglob(CAMPAIGN)):
        data = read_json(file) or {}
        if data.get("kind") != KIND:
            continue
        try:
            wanted = {
                file.parent / task["name"] / f"{arm['name']}-{seed}"
                for task in data["tasks"]
                for arm in data["arms"]
                for seed in data["seeds"]
            }
        except (KeyError, TypeError):
            notes.append(f"{file} is not the record of a campaign.")
            continue
        begun = len(wanted & {run.path for run in runs})
        if begun < len(wanted):
            notes.append(
                f"{file.parent}: {begun} of {len(wanted)} runs of the campaign have begun."
            )
    return notes


def _unlike(runs: Sequence[ManipulationRun]) -> list[str]:
    """Name what runs of a task were not evaluated alike under."""
    found: dict[str, set[str]] = {}
    for run in runs:
        sizes: dict[str, list[str]] = {}
        for one in run.evaluations:
            what = one.execution.label(f"{' '.join(run.task)}, {one.condition}")
            states = sorted(row.get("initial_state", -1) for row in one.episodes)
            listed = f"{states[0]} to {states[-1]}" if states else "none"
            size = f"seed {one.seed}: {len(states)} initial states ({listed})"
            sizes.setdefault(what, []).append(size)
        for what, parts in sizes.items():
            found.setdefault(what, set()).add(", ".join(parts))
    return [
        f"{what}: runs were not evaluated alike, but with {'; or with '.join(sorted(ways))}."
        for what, ways in found.items()
        if len(ways) > 1
    ]


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


def origins_table(runs: Sequence[ManipulationRun]) -> Table:
    """Return where the numbers of these runs came from."""
    return make_provenance_table(
        [
            Origin(
                run.name,
                run.config.seed,
                config_hash(run.config),
                run.provenance,
                run.config.steps,
                run.checkpoint_sha256,
                run.evaluations[0].policy_sha256 if run.evaluations else None,
                _evaluated(run.evaluations),
            )
            for run in runs
        ]
    )


def _evaluated(evaluations: Sequence[Evaluated]) -> Cell:
    if not evaluations:
        return blank()
    seeds = sorted({one.seed for one in evaluations})
    counts = " or ".join(map(str, sorted({len(one.episodes) for one in evaluations})))
    return Cell(", ".join(map(str, seeds)), f"{counts} episodes each")


def manipulation_data(runs: Sequence[ManipulationRun]) -> list[dict[str, Any]]:
    """Return all episodes with the runs that they are of."""
    return [
        {
            "folder": run.name,
            "config": to_dict(run.config),
            "config_sha256": config_hash(run.config),
            "checkpoint_sha256": run.checkpoint_sha256,
            "provenance": run.provenance,
            "evaluations": [
                {
                    "condition": one.condition,
                    "corrector": one.execution.corrector,
                    "stiffness": one.execution.stiffness,
                    "evaluation_seed": one.seed,
                    "policy_sha256": one.policy_sha256,
                    "episodes": list(one.episodes),
                }
                for one in run.evaluations
            ],
        }
        for run in runs
    ]
