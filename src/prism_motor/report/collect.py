"""Finds run folders and reads their contents, without loading any weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_motor._checks import InputError, PrismError
from prism_motor._console import count
from prism_motor.domains import Domain, domain_of
from prism_motor.reporting import PLAIN, Execution, ReportSpec
from prism_motor.runs import CheckpointError, RunError, to_dict
from prism_motor.runs.boundary import Boundary
from prism_motor.runs.layout import (
    CAMPAIGN,
    CHECKPOINTS,
    CONFIG,
    EVALUATIONS,
    METRICS,
    PROVENANCE,
    walk_runs,
)
from prism_motor.runs.seals import is_intact
from prism_motor.runs.verification import verify


@dataclass(frozen=True)
class StoredEvaluation:
    """One file in evaluations/: a policy under one condition and evaluation seed."""

    condition: str
    """Name of the condition."""
    execution: Execution
    """How the policy was executed."""
    seed: int
    """Evaluation seed."""
    checkpoint: int
    """Number of updates of the policy."""
    policy_sha256: str
    """Hash of the policy's weights."""
    protocol: dict[str, Any]
    """How much was evaluated, and how."""
    episodes: tuple[dict[str, Any], ...]
    """Every episode."""


@dataclass(frozen=True)
class RunRecord:
    """One training run."""

    path: Path
    """The folder."""
    name: str
    """The folder relative to the root of the report."""
    domain: Domain
    """Domain of the run."""
    config: Any
    """How it was trained."""
    config_sha256: str
    """Hash of config.json's contents."""
    provenance: dict[str, Any]
    """Code version, packages, machine and command."""
    updates: int
    """Updates done and saved."""
    checkpoint_sha256: str | None
    """Hash of the reported checkpoint's tensors; ``None`` if the folder does not have it."""
    metrics: tuple[dict[str, Any], ...]
    """Metrics logged during training, in order."""
    evaluations: tuple[StoredEvaluation, ...]
    """Evaluations of the newest checkpoint, or of the reported one."""
    integrity: str
    """Whether its files are as they were written: intact, changed or not sealed."""
    notes: tuple[str, ...]
    """What was left out, and why."""

    @property
    def spec(self) -> ReportSpec:
        """Its domain's report settings."""
        return self.domain.reporting

    @property
    def finished(self) -> bool:
        """Whether all planned updates are done."""
        return self.updates >= self.config.updates

    @property
    def budget(self) -> int:
        """Total number of updates, done or planned."""
        return max(self.updates, self.config.updates)

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings as plain data."""
        return to_dict(self.config)

    def episodes(self, condition: str, execution: Execution = PLAIN) -> list[dict[str, Any]]:
        """Return all episodes under a condition."""
        return [
            episode
            for one in self.evaluations
            if (one.condition, one.execution) == (condition, execution)
            for episode in one.episodes
        ]


@dataclass(frozen=True)
class CampaignPlan:
    """The runs that a campaign.json plans."""

    folder: Path
    """The campaign's folder."""
    domain: Domain
    """Domain of its runs."""
    seeds: dict[str, tuple[int, ...]]
    """Training seeds by name of the arm."""
    tasks: int
    """Number of repetitions: one per task or variant."""

    def note(self, runs: Sequence[RunRecord]) -> str | None:
        """Describe how many of the planned runs have begun, unless all have."""
        found = sum(self.covers(run) for run in runs)
        wanted = self.tasks * sum(len(seeds) for seeds in self.seeds.values())
        if found >= wanted:
            return None
        return f"{self.folder}: {found} of {count(wanted, 'run')} of the campaign have begun."

    def covers(self, run: RunRecord) -> bool:
        """Return whether a run belongs to the campaign."""
        return run.path.is_relative_to(self.folder)


@dataclass(frozen=True)
class RunCollection:
    """Everything that was found under a folder."""

    root: Path
    """The folder."""
    runs: tuple[RunRecord, ...]
    """Runs that can be reported, by folder."""
    problems: tuple[str, ...]
    """Run folders that cannot be read, and other things left out."""
    plans: tuple[CampaignPlan, ...]
    """Campaigns."""


def collect(root: str | Path) -> RunCollection:
    """Read all run folders at or under a folder.

    Args:
        root: The folder; may be a run itself.
    """
    folder = Path(root)
    if not folder.is_dir():
        raise RunError(f"No such folder: {folder}.")
    runs: list[RunRecord] = []
    problems: list[str] = []
    plans: list[CampaignPlan] = []
    boundary = Boundary(folder)
    for place, is_run in walk_runs(folder, boundary):
        if (place / CAMPAIGN).is_file() and boundary.holds(place / CAMPAIGN):
            plans += _read_plan(place, problems)
        if not is_run:
            continue
        name = place.relative_to(folder).as_posix()
        try:
            run = _read_run(place, folder.resolve().name if name == "." else name, boundary)
        except RunError as error:
            problems.append(str(error))
            continue
        runs.append(run)
        problems += run.notes
    problems += boundary.notes
    problems += [note for plan in plans if (note := plan.note(runs))]
    return RunCollection(folder, tuple(runs), tuple(problems), tuple(plans))


def _read_plan(folder: Path, problems: list[str]) -> list[CampaignPlan]:
    data = read_json(folder / CAMPAIGN) or {}
    try:
        domain = domain_of(data)
        names = [domain.arm_name(arm["name"]) for arm in data["arms"]]
        seeds = dict.fromkeys(names, tuple(map(int, data["seeds"])))
        tasks = len(data.get("tasks") or data.get("variants") or (None,))
        return [CampaignPlan(folder, domain, seeds, tasks)]
    except (KeyError, TypeError, ValueError):
        problems.append(f"{folder / CAMPAIGN} is not the record of a campaign.")
        return []


def _read_run(folder: Path, name: str, boundary: Boundary) -> RunRecord:
    from prism_motor.runs import Run

    # Check that its settings can be read by this version and with the loaded plugins.
    data = read_json(folder / CONFIG)
    if data is None:
        raise RunError(f"{name}: {CONFIG} is damaged or not that of a training run.")
    provenance = read_json(folder / PROVENANCE) or {}
    try:
        domain = domain_of(data)
        config = domain.read_config(data, f"{name}/{CONFIG}")
    except (PrismError, ValueError, TypeError, KeyError, AttributeError) as error:
        version = provenance.get("prism")
        made = f" It was made by prism {version}." if version else ""
        raise RunError(f"{name}: this version of prism cannot read the run: {error}{made}") from (
            error
        )
    state = verify(folder, weights=False)
    if any(problem.startswith(CONFIG) for problem in state.problems):
        raise RunError(f"{name}: {CONFIG} was changed after the run had begun; it is left out.")
    # Find its progress; archived records have no checkpoints, only evaluations and metrics.
    run = Run(folder, data)
    notes = [f"{name}: {problem}." for problem in state.problems if EVALUATIONS not in problem]
    stored = filter(boundary.holds, (folder / EVALUATIONS).glob("*.json"))
    found = _read_evaluations(sorted(stored), name, domain.reporting, notes)
    metrics = tuple(run.metrics() if boundary.holds(folder / METRICS) else ())
    steps = [step for step in run.steps() if boundary.holds(run.checkpoint_folder(step))]
    logged = int(metrics[-1].get("update", 0)) if metrics else 0
    updates = steps[-1] if steps else max([0, *(one.checkpoint for one in found)])
    if not steps and (config.reported is not None or not found):
        updates = max(updates, logged)
    if not steps and not found:
        notes.append(f"{name}: neither a complete checkpoint nor an evaluation in the folder.")
    shown = updates if config.reported is None else min(updates, config.reported)
    return RunRecord(
        path=folder,
        name=name,
        domain=domain,
        config=config,
        config_sha256=_hash(data),
        provenance=provenance,
        updates=updates,
        checkpoint_sha256=_checkpoint_hash(folder, shown, name, notes) if shown in steps else None,
        metrics=metrics,
        evaluations=_of_reported(found, shown, name, notes),
        integrity=state.word,
        notes=tuple(notes),
    )


def _read_evaluations(
    files: Sequence[Path], name: str, spec: ReportSpec, notes: list[str]
) -> list[StoredEvaluation]:
    """Read the valid files and add a note for each of the others."""
    from prism_motor.train.evaluations import SCHEMA

    found = []
    for file in files:
        data = read_json(file)
        try:
            if data is None:
                raise InputError("no readable JSON")
            if is_intact(data) is False:
                raise InputError("it was changed after it was written")
            if data["schema"] != SCHEMA:
                raise InputError(f"schema {data['schema']}, this prism reads {SCHEMA}")
            if not data["episodes"]:
                raise InputError("no episodes")
            for row in data["episodes"]:
                for measure in spec.domain.measures:
                    measure.value(row)
            found.append(
                StoredEvaluation(
                    condition=data["condition"]["name"],
                    execution=spec.execution(data["protocol"]),
                    seed=data["evaluation_seed"],
                    checkpoint=data["checkpoint"],
                    policy_sha256=data["policy_sha256"],
                    protocol=data["protocol"],
                    episodes=tuple(data["episodes"]),
                )
            )
        except (ValueError, KeyError, TypeError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            notes.append(f"{name}/{EVALUATIONS}/{file.name} is left out: {why}.")
    return found


def _of_reported(
    found: list[StoredEvaluation], updates: int, name: str, notes: list[str]
) -> tuple[StoredEvaluation, ...]:
    """Return the evaluations of the newest or reported checkpoint, all with the same weights."""
    kept = [one for one in found if one.checkpoint == updates]
    notes += [
        f"{name}: {one.execution.label(one.condition)}, seed {one.seed}, was evaluated after "
        f"{count(one.checkpoint, 'update')} and is left out, because the run has {updates}."
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


def _hash(settings: dict[str, Any]) -> str:
    """Return the SHA-256 of settings, independent of their order and layout in the file."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _checkpoint_hash(folder: Path, step: int, name: str, notes: list[str]) -> str | None:
    """Return the SHA-256 of a checkpoint's tensors from its marker."""
    from prism_motor.runs.checkpoints import TENSORS, read_marker

    try:
        return read_marker(folder / CHECKPOINTS / f"{step:08d}").files[TENSORS]["sha256"]
    except CheckpointError as error:
        notes.append(f"{name}: {error}")
        return None


def read_json(file: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or ``None`` if it cannot be read."""
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None
