"""Tables of single runs: what each one reached, and where its numbers came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prism_motor.report.cells import Cell, Table, blank
from prism_motor.report.measures import NOMINAL, find_measure
from prism_motor.report.records import Evaluation
from prism_motor.report.results import Results


def runs_table(results: Results) -> Table:
    """Return every training with its progress and its own numbers."""
    measures = [find_measure(f) for f in ("survived", "linear_error", "yaw_error", "speed_ratio")]
    rows = []
    for arm in results.section.arms:
        for seed in arm.planned:
            run = arm.runs.get(seed)
            if run is None:
                nothing = [blank()] * (3 + len(measures))
                rows.append((Cell(arm.label), Cell(str(seed)), *nothing))
                continue
            done = Cell(f"{run.updates:,} / {run.budget:,}", kind="" if run.finished else "missing")
            seconds = run.metrics[-1].get("seconds") if run.metrics else None
            cells = [Cell(arm.label), Cell(str(seed)), Cell(run.name), done]
            cells.append(Cell(f"{seconds / 60:.1f}") if seconds else blank())
            for measure in measures:
                values = [measure.value(e) for e in run.episodes(NOMINAL)]
                present = [value for value in values if value is not None]
                mean = sum(present) / len(present) if present else None
                cells.append(blank() if mean is None else Cell(measure.write(mean)))
            rows.append(tuple(cells))
    return Table(
        "Every training",
        ("arm", "seed", "folder", "updates", "minutes", *(m.heading for m in measures)),
        tuple(rows),
        "Nominal condition, mean over the episodes of one policy. Trainings that are not finished "
        "are shown here and count nowhere else.",
    )


def provenance_table(results: Results) -> Table:
    """Return where every number came from."""
    return make_provenance_table(
        [
            Origin(
                run.name,
                run.config.seed,
                run.config_sha256,
                run.provenance,
                run.updates,
                run.checkpoint_sha256,
                run.evaluations[0].policy_sha256 if run.evaluations else None,
                _evaluated(run.evaluations),
            )
            for run in results.section.runs
        ]
    )


@dataclass(frozen=True)
class Origin:
    """What makes the numbers of a run checkable."""

    folder: str
    """Name of the run."""
    seed: int
    """Training seed."""
    config_sha256: str
    """Hash of the resolved settings."""
    provenance: dict[str, Any]
    """Code version, packages, machine and command."""
    updates: int
    """Updates behind the checkpoint."""
    checkpoint_sha256: str | None
    """Hash of the checkpoint."""
    policy_sha256: str | None
    """Hash of the weights that were evaluated."""
    evaluated: Cell
    """Evaluation seeds and episodes."""


def make_provenance_table(origins: Sequence[Origin]) -> Table:
    """Return where numbers came from, one run a row."""
    rows = []
    for one in origins:
        made = one.provenance
        commit = made.get("commit") or ""
        code = f"{made.get('prism', 'unknown')} {commit[:8]}".strip()
        code += " with changes" if made.get("uncommitted_changes") else ""
        rows.append(
            (
                Cell(one.folder),
                Cell(str(one.seed)),
                _hash(one.config_sha256),
                Cell(code, full=commit),
                Cell(str(one.updates)),
                _hash(one.checkpoint_sha256),
                _hash(one.policy_sha256),
                one.evaluated,
                Cell(str(made.get("created", "unknown"))[:16].replace("T", " ")),
            )
        )
    return Table(
        "Where the numbers come from",
        (
            "folder",
            "seed",
            "config",
            "prism",
            "checkpoint",
            "checkpoint sha256",
            "policy sha256",
            "evaluation seeds",
            "started",
        ),
        tuple(rows),
        "Hashes are cut to 12 characters here and whole in report.json. Config: SHA-256 of the "
        "resolved settings. Policy: SHA-256 of the weights that were evaluated.",
    )


def _evaluated(evaluations: Sequence[Evaluation]) -> Cell:
    if not evaluations:
        return blank()
    seeds = sorted({one.seed for one in evaluations})
    protocols = sorted({(one.protocol["envs"], one.protocol["episodes"]) for one in evaluations})
    sizes = ", ".join(f"{envs} × {episodes}" for envs, episodes in protocols)
    return Cell(", ".join(map(str, seeds)), f"{sizes} episodes")


def _hash(value: str | None) -> Cell:
    return blank() if value is None else Cell(value[:12], full=value)
