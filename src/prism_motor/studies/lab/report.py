"""``prism lab report``: the page, its tables as Markdown, its numbers as JSON, and the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from prism_motor._checks import check_choice
from prism_motor._figures import STYLE, check_matplotlib, save_png, to_svg
from prism_motor._page import render_page
from prism_motor.runs.atomic import write_json, write_text
from prism_motor.studies.lab.arms import REFERENCE
from prism_motor.studies.lab.config import FIRST_TUNING
from prism_motor.studies.lab.figures import draw_axis, draw_map
from prism_motor.studies.lab.records import LabError, LabRecords
from prism_motor.studies.lab.results import MULTIPLICATIVE, PARTS, LabSummary, summarise
from prism_motor.studies.lab.tables import (
    LabTable,
    findings,
    map_table,
    overall_table,
    to_markdown,
)


@dataclass(frozen=True)
class LabReport:
    """What was written."""

    page: Path
    findings: list[tuple[str, str]]


def report_lab(folder: Path, drawn: Sequence[str] = ()) -> LabReport:
    """Write index.html, report.md, summary.json and pictures of a laboratory into its folder.

    Args:
        folder: The laboratory's folder.
        drawn: Names of the arms in map.png; empty for all.
    """
    from matplotlib import rc_context

    check_matplotlib("prism lab report")
    records = LabRecords(folder)
    summary = summarise(records, records.config().reported)
    if not any(row.arm != REFERENCE for row in summary.rows):
        raise LabError(
            f"{folder} has no finished cell to compare yet. Continue: prism lab run {folder}"
        )
    compared = [arm.name for arm in summary.arms if arm != REFERENCE]
    for name in drawn:
        check_choice("arm", name, compared)
    confirmation = records.confirmation()
    confirmed = None
    if confirmation is not None and confirmation["finished"]:
        confirmed = summarise(records, confirmation["seeds"])
    chapters = [_chapter(summary, setting) for setting in summary.settings]
    with rc_context(STYLE):
        pictures = {str(s): to_svg(draw_map(summary, s)) for s in summary.settings}
        save_png(draw_map(summary, summary.settings[0], drawn), folder / "map.png")
        varied = [
            name
            for name in ("size", "samples")
            if len({getattr(setting, name) for setting in summary.settings}) > 1
        ]
        curves = [to_svg(draw_axis(summary, name)) for name in varied]
        for name in varied:
            save_png(draw_axis(summary, name), folder / f"{name}.png")
    again = confirmed and [_chapter(confirmed, setting) for setting in confirmed.settings]
    write_text(folder / "report.md", _markdown(chapters, again or []))
    write_json(folder / "summary.json", _numbers(summary, confirmed))
    page = render_page(
        "lab.html",
        title="When do products pay?",
        config=records.config(),
        about=records.about["provenance"],
        summary=summary,
        threshold=MULTIPLICATIVE,
        tuning_seed=FIRST_TUNING,
        reference=REFERENCE,
        chapters=chapters,
        pictures=pictures,
        curves=curves,
        seconds=sum(cell.seconds for cell in records.cells.values()),
        cells=len(records.cells),
        confirmed=again,
        confirmation=confirmation,
    )
    write_text(folder / "index.html", page)
    return LabReport(folder / "index.html", chapters[0]["findings"])


def _chapter(summary: LabSummary, setting: Any) -> dict[str, Any]:
    return {
        "setting": str(setting),
        "findings": findings(summary, setting),
        "overall": overall_table(summary, setting),
        "maps": [map_table(summary, setting, part) for part in PARTS],
    }


def _markdown(chapters: list[dict[str, Any]], confirmed: list[dict[str, Any]]) -> str:
    """Return the tables of the reported seeds, then those of the confirmation."""
    tables: list[LabTable] = []
    for chapter in chapters:
        tables += [chapter["overall"], *chapter["maps"]]
    for chapter in confirmed:
        told = [chapter["overall"], *chapter["maps"]]
        tables += [replace(table, title=f"Confirmation: {table.title}") for table in told]
    note = (
        "Map: error relative to the MLP of equal size [95 % interval over seeds]; bold: better or "
        "worse, after Holm's correction over all cells. The MLP's own column is % unexplained."
    )
    return "\n".join([*map(to_markdown, tables), note]) + "\n"


def _numbers(summary: LabSummary, confirmed: LabSummary | None) -> dict[str, Any]:
    """Return all numbers of the page."""
    return {
        "structures": {
            name: {**asdict(found), "multiplicativity": found.multiplicativity}
            for name, found in summary.structures.items()
        },
        "reported": _rows(summary),
        "confirmed": None if confirmed is None else _rows(confirmed),
        "unfinished_cells": summary.missing,
    }


def _rows(summary: LabSummary) -> list[dict[str, Any]]:
    return [
        {
            "problem": row.problem.name,
            "arm": row.arm.name,
            **row.setting._asdict(),
            "parameters": row.parameters,
            "learning_rate": row.learning_rate,
            "rate_at_edge": row.at_edge,
            "errors": row.errors,
            "comparison": {
                part: {
                    "ratio": ratio.centre,
                    "interval": ratio.interval,
                    "p_holm": row.claims[part].adjusted,
                    "outcome": row.outcome(part),
                }
                for part in row.claims
                if (ratio := row.ratio(part)) is not None
            },
        }
        for row in summary.rows
    ]
