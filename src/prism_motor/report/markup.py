"""Tables as HTML."""

from __future__ import annotations

import re
from html import escape

from prism_motor.report.cells import Cell, Table

STYLE = """
.box { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; margin: 0.5rem 0; }
.box table { width: 100%; }
.box th:first-child, .box td:first-child { white-space: normal; min-width: 8.8rem;
  max-width: 15rem; }
@media (max-width: 480px) { .box th:first-child, .box td:first-child { min-width: 6.4rem;
  max-width: 8.5rem; } }
.words { text-align: left; }
.missing { color: var(--soft); font-style: italic; }
td.better { background: var(--good); } td.worse { background: var(--bad); }
details { margin: 0.8rem 0; } summary { cursor: pointer; font-weight: 600; }
"""


def titled(table: Table) -> str:
    """Return a table under its title."""
    return f"<h3>{escape(table.title)}</h3>{render_table(table)}"


def folded(title: str, inside: str) -> str:
    """Return something that opens when its title is clicked."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def render_table(table: Table, *, caption: bool = False, note: bool = True) -> str:
    """Return a table that scrolls inside its box.

    Args:
        table: The table.
        caption: Whether its title stands above the first column.
        note: Whether its note stands below.
    """
    columns = list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.columns)
    texts = [not all(_is_number(cell) for cell in column) for column in columns]
    first = table.title if caption else ""
    headings = (first or table.columns[0], *table.columns[1:])
    head = "".join(
        f"<th{' class=words' if text else ''}>{escape(heading)}</th>"
        for heading, text in zip(headings, texts, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(_cell(c, text) for c, text in zip(row, texts, strict=True))}</tr>"
        for row in table.rows
    )
    below = f"<p class='note'>{escape(table.note)}</p>" if note and table.note else ""
    return (
        f"<div class='box' tabindex='0'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{below}"
    )


def _cell(cell: Cell, text: bool) -> str:
    kinds = " ".join(kind for kind in ("words" if text else "", cell.kind) if kind)
    opened = f' class="{escape(kinds)}"' if kinds else ""
    opened += f' title="{escape(cell.full)}"' if cell.full else ""
    detail = f"<small>{escape(cell.detail)}</small>" if cell.detail else ""
    return f"<td{opened}>{escape(cell.text)}{detail}</td>"


def _is_number(cell: Cell) -> bool:
    """Say whether a cell belongs in a column of numbers, which stand to the right."""
    pattern = r"[<+−-]?\s?\d[-\d.,/ ±%−[\]]*"
    return cell.kind == "missing" or re.fullmatch(pattern, cell.text) is not None
