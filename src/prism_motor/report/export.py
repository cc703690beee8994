"""The report as data and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prism_motor._columns import align_columns
from prism_motor.report import run_tables, tables, words
from prism_motor.report.arms import FREE
from prism_motor.report.cells import Cell, Chapter, Table
from prism_motor.report.claims import Claim
from prism_motor.report.measures import MEASURES, NOMINAL
from prism_motor.report.records import RunRecord
from prism_motor.report.results import Results, Score
from prism_motor.runs import to_dict

SCHEMA = 1
"""Version of report.json; raised when its meaning changes."""


def make_json(
    all_results: Sequence[Results], problems: Sequence[str], provenance: dict[str, Any]
) -> dict[str, Any]:
    """Return all numbers with where they came from.

    Args:
        all_results: One a task.
        problems: What is missing or was left out.
        provenance: Of this report.
    """
    return {
        "schema": SCHEMA,
        "summary": words.lead(all_results),
        "same_arm_if_equal_but": list(FREE),
        "units": {measure.field: measure.unit for measure in MEASURES.values()},
        "sections": [_section(results) for results in all_results],
        "problems": list(problems),
        "provenance": provenance,
    }


def _section(results: Results) -> dict[str, Any]:
    arms = []
    for arm in results.section.arms:
        found = {
            condition: {
                field: _score(results.scores[key])
                for field in MEASURES
                if (key := (arm.label, condition, field)) in results.scores
            }
            for condition in results.conditions
        }
        for condition in results.conditions:
            rate = results.rates.get((arm.label, condition))
            if rate is not None:
                found[condition]["episodes"] = {
                    "survived": rate.survived,
                    "count": rate.episodes,
                    "wilson": list(rate.interval),
                }
        overall = {
            field: {"iqm": value.centre, "interval": _bounds(value.interval), "n": value.count}
            for (label, field), value in results.overall.items()
            if label == arm.label
        }
        arms.append(
            {
                "label": arm.label,
                "name": arm.name,
                "parameters": arm.parameters,
                "planned_seeds": list(arm.planned),
                "missing_seeds": arm.missing(NOMINAL),
                "conditions": found,
                "over_all_conditions": overall,
                "runs": [_run(run) for run in arm.runs.values()],
            }
        )
    return {
        "title": results.section.title,
        "reference": results.reference,
        "findings": [f"{subject}{finding}" for subject, finding in words.findings(results)],
        "arms": arms,
        "comparisons": {
            name: [_claim(claim) for claim in claims] for name, claims in results.claims.items()
        },
    }


def _score(score: Score) -> dict[str, Any]:
    found = score.estimate
    return {
        "mean": found.centre,
        "sd": found.sd,
        "interval": _bounds(found.interval),
        "n": found.count,
        "by_training_seed": {str(seed): value for seed, value in score.seeds.items()},
    }


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
        "training_seed": run.config.seed,
        "updates": run.updates,
        "planned_updates": run.config.iterations,
        "finished": run.finished,
        "config_sha256": run.config_sha256,
        "checkpoint_sha256": run.checkpoint_sha256,
        "provenance": run.provenance,
        "evaluations": [
            {
                "condition": one.condition,
                "evaluation_seed": one.seed,
                "checkpoint": one.checkpoint,
                "policy_sha256": one.policy_sha256,
                "protocol": one.protocol,
            }
            for one in run.evaluations
        ],
        "config": to_dict(run.config),
    }


def _bounds(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)


def make_markdown(
    title: str,
    all_results: Sequence[Results],
    problems: Sequence[str],
    more: Sequence[Chapter] = (),
) -> str:
    """Return the tables and findings as Markdown.

    Args:
        title: Heading.
        all_results: One a task.
        problems: What is missing or was left out.
        more: Further chapters.
    """
    parts = [f"# {title}", *([words.lead(all_results)] if all_results else [])]
    for results in all_results:
        parts.append(f"## {results.section.title}")
        parts.append("\n".join(f"- **{s}**{f}" for s, f in words.findings(results)))
        found = [tables.main_table(results)] if results.conditions else []
        if claims := results.claims[NOMINAL]:
            found.append(tables.claims_table(claims, "Differences, nominal condition"))
        found += tables.robustness_tables(results)
        if claims := results.claims["robustness"]:
            found.append(tables.claims_table(claims, "Differences under other conditions"))
        found += [run_tables.runs_table(results), run_tables.provenance_table(results)]
        parts += [markdown_table(table) for table in found]
    for chapter in more:
        parts.append(f"## {chapter.title}")
        if chapter.findings:
            parts.append("\n".join(f"- **{s}**{f}" for s, f in chapter.findings))
        parts += [markdown_table(table) for table in (*chapter.tables, *chapter.folded)]
    if problems:
        parts.append("## Missing or left out")
        parts.append("\n".join(f"- {problem}" for problem in problems))
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """Return a table with its title and note as Markdown."""
    rows = [table.columns, ["---"] * len(table.columns)]
    rows += [[str(cell) for cell in row] for row in table.rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([f"### {table.title}", "", *lines, "", table.note]).rstrip()


def text_table(table: Table) -> str:
    """Return a table for a terminal, turned: its rows, such as arms, stand side by side."""
    lines = [[table.columns[0], *(row[0].text for row in table.rows)]]
    for index, heading in enumerate(table.columns[1:], start=1):
        lines.append([heading, *(_short(row[index]) for row in table.rows)])
    return align_columns(lines)


def _short(cell: Cell) -> str:
    """Return a cell with its interval, if it has one."""
    return str(cell) if cell.detail.startswith("[") else cell.text
