"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]], numbers: int = 2) -> str:
    """Return rows of text in columns.

    Args:
        rows: The header and the rows, all of one length.
        numbers: From this column on, cells are set to the right.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i < numbers else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
