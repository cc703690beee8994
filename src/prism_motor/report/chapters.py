"""The chapters of a report: findings, tables, curves and provenance of each section."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prism_motor.report.by_task import by_task_table
from prism_motor.report.curves import ChapterCurves, make_chapter_curves
from prism_motor.report.families import (
    TaskFamilies,
    families_claims,
    families_table,
    find_families,
    tasks_table,
)
from prism_motor.report.sentences import Sentence, findings
from prism_motor.report.tables import (
    Cell,
    Table,
    blank,
    claims_table,
    conditions_tables,
    main_table,
)
from prism_motor.runs.layout import TUNING

if TYPE_CHECKING:
    from prism_motor.report.attachments import AttachmentBudget
    from prism_motor.report.collect import CampaignPlan, RunRecord
    from prism_motor.report.results import SectionResults
    from prism_motor.statistics.claims import Claim


@dataclass(frozen=True)
class Chapter:
    """Everything shown for one task, or for several together."""

    title: str
    """What it is about."""
    task: bool
    """Whether it is about a single task with its runs."""
    findings: tuple[Sentence, ...]
    """Findings as sentences."""
    main: Table | None
    """The plain condition; ``None`` before any evaluation."""
    differences: Table | None
    """Comparisons under the plain condition, if there is more than one seed."""
    conditions: tuple[Table, ...]
    """One table per measure under all conditions."""
    other_differences: Table | None
    """Comparisons under the other conditions."""
    curves: ChapterCurves | None
    """Learning curves."""
    runs: Table | None
    """Table of all runs."""
    provenance: Table | None
    """Provenance of the numbers."""
    tasks: Table | None = None
    """Results by task, where the chapter is about several."""

    @property
    def tables(self) -> list[Table]:
        """All tables in reading order."""
        found = [self.main, self.differences, self.tasks, *self.conditions, self.other_differences]
        return [table for table in (*found, self.runs, self.provenance) if table is not None]


def make_chapters(all_results: Sequence[SectionResults]) -> list[Chapter]:
    """Return one chapter per result, and one per group of runs whose tasks come in families."""
    families = find_families(all_results)
    chapters = []
    for index, results in enumerate(all_results):
        if index in families:
            chapters.append(_families_chapter(families[index]))
        chapters.append(make_chapter(results))
    return chapters


def _families_chapter(found: TaskFamilies) -> Chapter:
    return Chapter(
        title=found.title,
        task=False,
        findings=(),
        main=families_table(found),
        differences=families_claims(found),
        conditions=(),
        other_differences=None,
        curves=None,
        runs=None,
        provenance=None,
        tasks=tasks_table(found),
    )


def make_chapter(results: SectionResults) -> Chapter:
    """Return the chapter of one section."""
    spec, section = results.spec, results.section
    differences = other_differences = None
    if _worth_a_table(results.claims):
        plain = spec.plain_title[0].lower() + spec.plain_title[1:]
        differences = claims_table(results.claims, f"Differences, {plain}")
    if _worth_a_table(results.other_claims):
        title = f"Differences under {spec.other_conditions}"
        other_differences = claims_table(results.other_claims, title, folded=True)
    return Chapter(
        title=results.title,
        task=section is not None,
        findings=tuple(findings(results)),
        main=main_table(results) if results.conditions else None,
        differences=differences,
        conditions=tuple(conditions_tables(results)),
        other_differences=other_differences,
        curves=make_chapter_curves(section) if section else None,
        runs=runs_table(results) if section else None,
        provenance=provenance_table(section.runs) if section else None,
        tasks=by_task_table(results),
    )


def _worth_a_table(claims: Sequence[Claim]) -> bool:
    """Return whether any comparison has two seeds; for one seed, a sentence is enough."""
    return any(claim.comparison and len(claim.comparison.seeds) > 1 for claim in claims)


def runs_table(results: SectionResults) -> Table:
    """Return a table of all runs with their progress and results."""
    spec = results.spec
    measures = [spec.measure(field) for field in spec.run_measures]
    arms = results.section.arms if results.section else ()
    rows = []
    for arm in arms:
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
                values = [measure.value(episode) for episode in run.episodes(spec.plain)]
                present = [value for value in values if value is not None]
                mean = sum(present) / len(present) if present else None
                cells.append(blank() if mean is None else Cell(measure.write(mean)))
            rows.append(tuple(cells))
    return Table(
        "Every training",
        ("arm", "seed", "folder", "updates", "minutes", *(m.heading for m in measures)),
        tuple(rows),
        f"{spec.plain_title}, mean over the episodes of one policy. Trainings that are not "
        "finished are shown here and count nowhere else.",
        folded=True,
    )


def provenance_table(runs: Sequence[RunRecord]) -> Table:
    """Return the provenance of all numbers, one run per row."""
    rows = []
    for run in runs:
        made = run.provenance
        commit = str(made.get("commit") or "")
        code = f"{made.get('prism', 'unknown')} {commit[:8]}".strip()
        code += " with changes" if made.get("uncommitted_changes") else ""
        rows.append(
            (
                Cell(run.name, run.integrity),
                Cell(str(run.config.seed)),
                _hash(run.config_sha256),
                Cell(code, full=commit),
                Cell(str(run.updates)),
                _hash(run.checkpoint_sha256),
                _hash(run.evaluations[0].policy_sha256 if run.evaluations else None),
                _evaluated(run),
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
        "resolved settings. Policy: SHA-256 of the weights that were evaluated. Intact: settings, "
        "provenance, metrics and evaluations are as they were written (prism verify checks "
        "weights, too); runs of earlier versions are not sealed.",
    )


def _evaluated(run: RunRecord) -> Cell:
    if not run.evaluations:
        return blank()
    seeds = sorted({one.seed for one in run.evaluations})
    extents = sorted({run.spec.extent(one.protocol, one.episodes) for one in run.evaluations})
    return Cell(", ".join(map(str, seeds)), " or ".join(extents))


def _hash(value: str | None) -> Cell:
    return blank() if value is None else Cell(value[:12], full=value)


def tuning_tables(plans: Sequence[CampaignPlan], budget: AttachmentBudget) -> list[Table]:
    """Return one table per campaign that tuned its arms before the comparison."""
    tables = []
    for plan in plans:
        if not budget.holds(plan.folder / TUNING):
            continue
        try:
            data = json.loads((plan.folder / TUNING).read_text())
            tables.append(_tuning_table(data, plan))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # no tuning, or from another version
    return tables


def _tuning_table(data: dict[str, Any], plan: CampaignPlan) -> Table:
    rows = []
    for name, arm in data["arms"].items():
        for tried in arm["settings"]:
            score, chosen = tried["score"], tried["setting"] == arm["chosen"]
            setting = ", ".join(
                f"{key.rpartition('.')[2]} {value}" for key, value in tried["setting"].items()
            )
            number = blank() if score is None else Cell(f"{score:.{2 if abs(score) >= 1 else 4}f}")
            label = plan.domain.arm_name(name)
            rows.append((Cell(label), Cell(setting), number, Cell("chosen" if chosen else "")))
    seeds = ", ".join(map(str, data["seeds"]))
    return Table(
        "Tuning before the comparison",
        ("arm", "setting", "score", ""),
        tuple(rows),
        f"Every arm got {data['runs_per_arm']} runs of {100 * data['fraction']:.0f} % of the "
        f"length, on training seeds {seeds} that are not reported. Score: {data['criterion']}.",
    )
