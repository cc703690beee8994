"""The report of a pilot: the arms are revealed, and the numbers put on one page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prism_motor._page import render_page
from prism_motor.arms import arm_colours
from prism_motor.pilots.labelling import read_second
from prism_motor.pilots.layout import LABELS, REVEALED, PilotError
from prism_motor.pilots.plan import PilotPlan, SealedPart, open_sealed, read_plan
from prism_motor.pilots.records import Trial, TrialBook, now
from prism_motor.pilots.results import PilotResults, counting, succeeded, summarise
from prism_motor.pilots.tables import make_findings, make_tables, plan_rows
from prism_motor.report.markdown import escape, markdown_table
from prism_motor.report.tables import Table
from prism_motor.runs.atomic import write_json, write_text
from prism_motor.runs.layout import REPORT

SCHEMA = 1
"""Version of report.json; increased when its meaning changes."""


@dataclass(frozen=True)
class PilotReport:
    """The files and contents of a report."""

    page: Path
    """The page; report.md and report.json are next to it."""
    findings: tuple[tuple[str, str], ...]
    """What was found, as pairs of a subject and a sentence."""
    tables: tuple[Table, ...]
    """All tables."""
    results: PilotResults
    """The numbers."""


def report_pilot(folder: Path, *, unfinished: bool = False) -> PilotReport:
    """Reveal the arms and write the report; no trial may follow.

    Args:
        folder: The pilot's folder.
        unfinished: End the pilot although trials are left.
    """
    plan = read_plan(folder)
    book = TrialBook(folder, plan)
    done = len(counting(book.trials))
    if not book.finished and not unfinished and not (folder / REVEALED).exists():
        raise PilotError(
            f"{done} of {len(plan.order)} planned trials have a label. The report reveals the arms "
            f"and so ends the pilot: finish it with prism pilot run {folder}, or give --unfinished."
        )
    if not done:
        raise PilotError(f"{folder} has no labelled trial yet: prism pilot run {folder}")
    sealed = open_sealed(folder)
    second = {file.stem: read_second(file) for file in sorted((folder / LABELS).glob("*.json"))}
    results = summarise(plan, sealed, book.trials, second)
    findings = make_findings(plan, results)
    tables = make_tables(plan, sealed, results, book.trials)
    page = folder / f"{REPORT}.html"
    rendered = _render(folder, plan, results, book.trials, findings, tables)
    # From here on the arms are known.
    if not (folder / REVEALED).exists():
        write_json(folder / REVEALED, {"time": now(), "trials": done})
    write_json(folder / f"{REPORT}.json", _make_json(plan, sealed, results))
    write_text(folder / f"{REPORT}.md", _make_markdown(folder, plan, findings, tables))
    write_text(page, rendered)
    return PilotReport(page, tuple(findings), tuple(tables), results)


def _render(
    folder: Path,
    plan: PilotPlan,
    results: PilotResults,
    trials: list[Trial],
    findings: list[tuple[str, str]],
    tables: list[Table],
) -> str:
    colours = arm_colours(arm.name for arm in results.arms)
    outcomes = {(trial.arm, trial.pose): succeeded(trial) for trial in counting(trials)}
    marks = {True: "success", False: "failure", None: "missing"}
    bars = [
        {
            "name": arm.name,
            "colour": colours[arm.name],
            "rate": 100 * arm.tally.rate if arm.tally.trials else None,
            "low": 100 * arm.wilson.low if arm.wilson else 0,
            "high": 100 * arm.wilson.high if arm.wilson else 0,
            "text": f"{arm.tally.successes} of {arm.tally.trials}",
            "poses": [marks[outcomes.get((arm.letter, pose.number))] for pose in plan.poses],
        }
        for arm in results.arms
    ]
    return render_page(
        "pilot.html",
        title=folder.resolve().name,
        findings=findings,
        bars=bars,
        poses=[pose.number for pose in plan.poses],
        tables=tables,
        plan=plan_rows(plan),
        command=f"prism pilot report {folder.name}",
        made=f"Arms revealed and page made {now()}.",
    )


def _make_markdown(
    folder: Path, plan: PilotPlan, findings: list[tuple[str, str]], tables: list[Table]
) -> str:
    parts = [f"# Pilot {escape(folder.resolve().name)}"]
    parts.append("\n".join(f"- **{escape(who)}**{escape(what)}" for who, what in findings))
    parts.append("\n".join(f"- {name}: {escape(value)}" for name, value in plan_rows(plan)))
    parts += [markdown_table(table) for table in tables if table.rows]
    return "\n\n".join(parts) + "\n"


def _make_json(plan: PilotPlan, sealed: SealedPart, results: PilotResults) -> dict[str, Any]:
    """Return all numbers, and who the letters are."""
    numbers = asdict(results)
    for arm in numbers["arms"]:
        arm["failures"] = {str(code): number for code, number in arm["failures"].items()}
        arm["sources"] = [source.sha256 for source in sealed.arm(arm["letter"]).policies]
    return {
        "schema": SCHEMA,
        "test": plan.config.test,
        "arms_by_letter": {letter: sealed.arm(letter).name for letter in plan.arms},
        **numbers,
    }
