"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def align_columns(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as text: the first column to the left, the others to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
