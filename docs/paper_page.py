"""Writes docs/paper.md, the paper row by row, from docs/paper.toml: ``python docs/paper_page.py``.

Every row names its place in the code; :func:`resolve` finds it, so that a test can tell when the
code of a row is gone.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

DOCS = Path(__file__).parent
ROOT = DOCS.parent
STATUSES = {
    "exact": "as in the paper",
    "differs": "with the reason beside it",
    "chosen": "the paper leaves it open, and this is our choice",
    "beyond": "not in the paper",
    "absent": "not in this version",
}
"""What a row can be, in the order of the summary."""
BAR = r"\|"
"""A bar inside a cell of a Markdown table."""


@dataclass(frozen=True)
class Row:
    """One claim, setting, table or figure of the paper."""

    part: str
    """Heading under which it stands."""
    says: str
    """What the paper says."""
    status: str
    """One of :data:`STATUSES`."""
    code: tuple[str, ...]
    """Where it is in the code: ``module:symbol`` without the package's name, or a file."""
    note: str
    """What differs and why; what was chosen."""
    command: str
    """The command that makes it, if it is an experiment."""


def read_rows(file: Path = DOCS / "paper.toml") -> list[Row]:
    """Read all rows, in the order of the paper."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    return [
        Row(
            part=part["title"],
            says=row["says"],
            status=row["status"],
            code=tuple(row.get("code", "").split()),
            note=row.get("note", ""),
            command=row.get("command", ""),
        )
        for part in data["parts"]
        for row in part["rows"]
    ]


def resolve(place: str) -> Any:
    """Return what a place names: a file of the repository, or a symbol of the package.

    Args:
        place: ``campaigns/library/table1.toml``, ``nn:PolynomialLayer.forward`` or
            ``locomotion.presets:PRESETS[paper]``.
    """
    found: Any
    if ":" not in place:
        files = [base / place for base in (ROOT, ROOT / "src/prism_motor")]
        found = next((file for file in files if file.exists()), None)
        if found is None:
            raise LookupError(f"no file {place} in the repository")
        return found
    module, _, path = place.partition(":")
    found = importlib.import_module(f"prism_motor.{module}")
    for name, key in re.findall(r"(\w+)|\[([^\]]+)\]", path):
        found = getattr(found, name) if name else found[key]
    return found


def write_page(rows: list[Row]) -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines(rows)) + "\n"


def _lines(rows: list[Row]) -> Iterator[str]:
    counts = Counter(row.status for row in rows)
    yield "<!-- Written by docs/paper_page.py from docs/paper.toml: change that and run it. -->"
    yield "# The paper, row by row"
    yield ""
    yield (
        "Every formula, setting, table and figure of *PRISM: Polynomial Representations for "
        "Interaction-Structured Motor Control* (arXiv 2607.23473), and where it is in this package "
        "(modules of `prism_motor`, files of the repository). A test looks every place up. *Exact* "
        "is about settings, formulas and protocols: nobody has trained at the paper's size with "
        "this package yet; what was measured at smaller sizes is in "
        "[What we found](findings.md)."
    )
    yield ""
    yield "| | rows | |"
    yield "|---|---:|---|"
    for status, meaning in STATUSES.items():
        if counts[status]:
            yield f"| {status} | {counts[status]} | {meaning} |"
    part = ""
    for row in rows:
        if row.part != part:
            part = row.part
            yield ""
            yield f"## {part}"
            yield ""
            yield "| the paper | here | where | |"
            yield "|---|---|---|---|"
        places = "<br>".join(f"`{place}`" for place in row.code)
        words = [row.note] if row.note else []
        if row.command:
            words.append(f"`{row.command}`")
        cells = (row.says, row.status, places, "<br>".join(words))
        yield f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


if __name__ == "__main__":
    (DOCS / "paper.md").write_text(write_page(read_rows()), encoding="utf-8")
