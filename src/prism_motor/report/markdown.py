"""The report as Markdown, and its tables for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prism_motor import _console

if TYPE_CHECKING:
    from prism_motor.report.chapters import Chapter
    from prism_motor.report.tables import Cell, Table


def make_markdown(
    title: str, summary: str, chapters: Sequence[Chapter], problems: Sequence[str]
) -> str:
    """Return the tables and findings as Markdown.

    Args:
        title: Heading.
        summary: What was run.
        chapters: The chapters, in order.
        problems: What is missing or was left out.
    """
    parts = [f"# {escape(title)}", escape(summary)]
    for chapter in chapters:
        parts.append(f"## {escape(chapter.title)}")
        if chapter.findings:
            lines = (f"- **{escape(who)}**{escape(what)}" for who, what in chapter.findings)
            parts.append("\n".join(lines))
        parts += [markdown_table(table) for table in chapter.tables]
    if problems:
        parts.append("## Missing or left out")
        parts.append("\n".join(f"- {escape(problem)}" for problem in problems))
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """Return a table with its title and note as Markdown."""
    rows = [list(table.columns), ["---"] * len(table.columns)]
    rows += [[str(cell) for cell in row] for row in table.rows]
    lines = ["| " + " | ".join(escape(c).replace("|", "\\|") for c in row) + " |" for row in rows]
    return "\n".join([f"### {escape(table.title)}", "", *lines, "", escape(table.note)]).rstrip()


def escape(text: str) -> str:
    """Escape text so that it becomes neither HTML nor a link or image, since names are arbitrary.

    Only a less-than sign before a letter, slash, ! or ? starts a tag, and only a bracket that
    closes before another one or a colon makes a link; others stay as they are. Line breaks would
    begin a new paragraph, so they become spaces.
    """
    line = re.sub(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", text)
    return re.sub(r"\](?=[(\[:])", r"\\]", re.sub(r"<(?=[A-Za-z/!?])", "&lt;", line))


def terminal_table(table: Table) -> str:
    """Return a transposed table for a terminal: its rows, such as arms, become columns."""
    lines = [[table.columns[0], *(row[0].text for row in table.rows)]]
    for index, heading in enumerate(table.columns[1:], start=1):
        lines.append([heading, *(_short(row[index]) for row in table.rows)])
    return _console.text_table(lines)


def _short(cell: Cell) -> str:
    """Return a cell with its interval, if it has one."""
    return str(cell) if cell.detail.startswith("[") else cell.text
