"""Writes the report of a folder of runs: a page, its numbers as JSON, its tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_motor._checks import InputError
from prism_motor.report.arms import make_sections
from prism_motor.report.attachments import AttachmentBudget, find_analyses, find_videos
from prism_motor.report.by_task import by_task_json
from prism_motor.report.chapters import Chapter, make_chapters, tuning_tables
from prism_motor.report.collect import RunCollection, RunRecord, collect
from prism_motor.report.families import TaskFamilies, find_families
from prism_motor.report.keys import Key
from prism_motor.report.markdown import make_markdown
from prism_motor.report.page import ReportContents, render_report
from prism_motor.report.results import SectionResults, compute_all
from prism_motor.report.sentences import findings, summarise_runs
from prism_motor.runs import RunError, collect_provenance
from prism_motor.runs.atomic import write_json, write_text
from prism_motor.runs.layout import CONFIG, REPORT
from prism_motor.statistics.claims import Claim
from prism_motor.statistics.intervals import Estimate, wilson

SCHEMA = 2
"""Version of report.json; increased when its meaning changes."""


@dataclass(frozen=True)
class Report:
    """The files and contents of a report."""

    page: Path
    """The page; the other files are next to it."""
    data: Path
    """All numbers as JSON."""
    markdown: Path
    """All tables as Markdown."""
    summary: str
    """What was run, in a few sentences."""
    chapters: tuple[Chapter, ...]
    """The chapters, in order."""
    problems: tuple[str, ...]
    """What is missing or was left out."""


def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    reference: str | None = None,
    title: str | None = None,
    intro: str = "",
    command: str | None = None,
) -> Report:
    """Write the report of all runs at or under a folder.

    Args:
        folder: Where to look for run folders.
        out: The page, an .html file; default: report.html in ``folder``.
        reference: Name of the arm that others are compared with; default: the domain's.
        title: Heading; default: the folder's name.
        intro: A paragraph before the numbers.
        command: Command that the page gives to reproduce it.
    """
    page = Path(folder) / f"{REPORT}.html" if out is None else Path(out)
    if page.suffix not in (".html", ".htm"):
        raise InputError(f"The page must be an .html file, got {page}.")
    # Group runs into sections, compute their numbers and turn them into chapters.
    collection = collect(folder)
    if not collection.runs:
        raise RunError(_nothing(collection))
    sections = make_sections(collection)
    results = compute_all(sections, reference)
    chapters = tuple(make_chapters(results))
    summary = summarise_runs(results)
    # Attach videos and analyses while the page has room.
    budget = AttachmentBudget(collection.root)
    videos = find_videos([run for section in sections for run in section.runs], budget)
    analyses = find_analyses(collection.root, collection.runs, budget)
    tuning = tuning_tables(collection.plans, budget)
    notes = [note for section in sections for note in section.notes]
    problems = tuple(dict.fromkeys([*collection.problems, *notes, *budget.notes]))
    heading = title or collection.root.resolve().name
    made = collect_provenance()
    contents = ReportContents(
        title=heading,
        intro=intro,
        summary=summary,
        chapters=chapters,
        videos=videos,
        analyses=analyses,
        tuning=tuning,
        problems=problems,
        command=command or f"prism report {folder}",
        made=f"Page made {made['created'][:16].replace('T', ' ')} UTC by prism {made['prism']}"
        + (f" ({made['commit'][:8]})." if made["commit"] else "."),
    )
    # Write the page last, so that it only appears next to its data.
    data, markdown = page.with_suffix(".json"), page.with_suffix(".md")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        write_json(data, make_json(summary, results, problems, made))
        write_text(markdown, make_markdown(heading, summary, chapters, problems))
        write_text(page, render_report(contents))
    except OSError as error:
        raise RunError(f"Cannot write to {page.parent}: {error.strerror or error}.") from error
    return Report(page, data, markdown, summary, chapters, problems)


def _nothing(collection: RunCollection) -> str:
    text = f"{collection.root} has no training run that can be reported."
    if collection.problems:
        return text + "".join(f"\n  {problem}" for problem in collection.problems)
    return (
        f"{text} A run folder has a {CONFIG}; prism train locomotion --out "
        f"{collection.root}/NAME creates one."
    )


def make_json(
    summary: str,
    all_results: Sequence[SectionResults],
    problems: Sequence[str],
    provenance: dict[str, Any],
) -> dict[str, Any]:
    """Return all numbers with their provenance.

    Args:
        summary: What was run.
        all_results: Results per task, and of several tasks together.
        problems: What is missing or was left out.
        provenance: Provenance of this report.
    """
    suites = [_families(found) for found in find_families(all_results).values()]
    return {
        "schema": SCHEMA,
        "summary": summary,
        "sections": [_section(results) for results in all_results],
        **({"suites": suites} if suites else {}),
        "problems": list(problems),
        "provenance": provenance,
    }


def _section(results: SectionResults) -> dict[str, Any]:
    spec, section = results.spec, results.section
    return {
        "title": results.title,
        "kind": spec.domain.name,
        "same_arm_if_equal_but": list(spec.free),
        "units": {measure.field: measure.unit for measure in spec.measures},
        "reference": results.reference,
        "findings": [f"{subject}{finding}" for subject, finding in findings(results)],
        "arms": [_row(results, row.label) for row in results.rows],
        "comparisons": {
            "plain": [_claim(claim) for claim in results.claims],
            "other_conditions": [_claim(claim) for claim in results.other_claims],
        },
        **_optional(results),
        "runs": [_run(run) for run in section.runs] if section else [],
    }


def _optional(results: SectionResults) -> dict[str, Any]:
    """Return what only some domains have: what needs no policy, and numbers by task."""
    fixed: dict[str, Any] = {}
    for key, value in results.fixed.items():
        fixed.setdefault(key.label, {}).setdefault(key.condition, {})[key.field] = value
    by_task = by_task_json(results)
    found = {"without_policy": fixed, "by_task": by_task}
    return {name: value for name, value in found.items() if value}


def _families(found: TaskFamilies) -> dict[str, Any]:
    """Return the rate by family of tasks."""
    spec = found.spec

    def numbers(results: SectionResults | None) -> dict[str, Any]:
        keys = {label: Key(label, spec.plain, spec.rate.field) for label in found.labels}
        return {
            label: _by_seed(results, key)
            for label, key in keys.items()
            if results is not None and key in results.means
        }

    return {
        "title": found.title,
        "measure": spec.rate.field,
        "tasks": {
            name: [task.place.task for task in tasks if task.place]
            for name, tasks in found.families.items()
        },
        "families": {name: numbers(results) for name, results in found.means.items()},
        "all": numbers(found.together),
    }


def _by_seed(results: SectionResults, key: Key) -> dict[str, Any]:
    value = results.estimate(key)
    assert value is not None
    return _estimate(value) | {
        "by_training_seed": {str(s): v for s, v in results.means[key].items()}
    }


def _row(results: SectionResults, label: str) -> dict[str, Any]:
    """Return the numbers of an arm with one kind of execution."""
    spec = results.spec
    (row,) = [row for row in results.rows if row.label == label]
    found: dict[str, dict[str, Any]] = {}
    for condition in results.conditions:
        own = found.setdefault(condition, {})
        for measure in spec.measures:
            for solved, name in ((False, ""), (True, "_of_successes")):
                key = Key(label, condition, measure.field, solved)
                if key in results.means:
                    own[measure.field + name] = _by_seed(results, key)
        hits, episodes = results.rate(label, condition)
        if episodes:
            wilsons = list(wilson(hits, episodes))
            own["episodes"] = {spec.rate.field: hits, "count": episodes, "wilson": wilsons}
    together = results.section is None
    return {
        "label": label,
        "name": row.arm.name,
        "execution": row.execution._asdict(),
        "parameters": row.arm.parameters,
        "planned_seeds": [] if together else list(row.arm.planned),
        "missing_seeds": [] if together else row.arm.missing(spec.plain, row.execution),
        "conditions": found,
        "over_all_conditions": {
            field: _estimate(value)
            for (other, field), value in results.over_conditions.items()
            if other == label
        },
        "over_all_tasks": _estimate(results.over_tasks[label]) if results.over_tasks else None,
        "folders": [] if together else [run.name for run in row.arm.runs.values()],
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    interval = _bounds(found.interval)
    return {"mean": found.centre, "sd": found.sd, "interval": interval, "n": found.count}


def _claim(claim: Claim) -> dict[str, Any]:
    found = claim.comparison
    named = {
        "arm": claim.arm,
        "reference": claim.reference,
        "condition": claim.condition,
        "measure": claim.measure.field,
        "outcome": claim.outcome,
    }
    if found is None:
        return named | {"difference": None}
    return named | {
        "difference": found.difference,
        "sd": found.sd,
        "interval": _bounds(found.interval),
        "p": found.p_value,
        "p_holm": claim.adjusted,
        "probability_of_improvement": found.improvement,
        "probability_interval": _bounds(found.improvement_interval),
        "seeds": list(found.seeds),
        "unpaired_seeds": list(found.unpaired),
    }


def _run(run: RunRecord) -> dict[str, Any]:
    return {
        "folder": run.name,
        "arm": run.config.arm,
        "training_seed": run.config.seed,
        "updates": run.updates,
        "planned_updates": run.config.updates,
        "finished": run.finished,
        "config_sha256": run.config_sha256,
        "checkpoint_sha256": run.checkpoint_sha256,
        "integrity": run.integrity,
        "provenance": run.provenance,
        "evaluations": [
            {
                "condition": one.condition,
                "execution": one.execution._asdict(),
                "evaluation_seed": one.seed,
                "checkpoint": one.checkpoint,
                "policy_sha256": one.policy_sha256,
                "protocol": one.protocol,
                "episodes": len(one.episodes),
            }
            for one in run.evaluations
        ],
        "config": run.settings,
    }


def _bounds(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)
