"""What tables are made of."""

from __future__ import annotations

from dataclasses import dataclass

MISSING = "missing"
"""What stands where a number should be."""


@dataclass(frozen=True)
class Cell:
    """One field of a table."""

    text: str
    """What matters."""
    detail: str = ""
    """A second, smaller line."""
    kind: str = ""
    """``missing``, ``better``, ``worse`` or nothing; decides how it looks."""
    full: str = ""
    """The whole of something that is shown in short."""

    def __str__(self) -> str:
        return f"{self.text} {self.detail}".strip()


@dataclass(frozen=True)
class Table:
    """A table."""

    title: str
    """What it shows."""
    columns: tuple[str, ...]
    """Headings."""
    rows: tuple[tuple[Cell, ...], ...]
    """As many cells in each as there are headings."""
    note: str = ""
    """What one must know to read it."""


@dataclass(frozen=True)
class Chapter:
    """Tables that belong together, and what they show."""

    title: str
    """What it is about."""
    findings: tuple[tuple[str, str], ...]
    """Subjects and what was found of each; a pair reads as a sentence."""
    tables: tuple[Table, ...]
    """Those to look at first."""
    folded: tuple[Table, ...] = ()
    """Those to look up."""


def blank() -> Cell:
    """Return the cell of a number that is not there."""
    return Cell(MISSING, kind="missing")
