"""Counts what came of every fault, for the table at the end of ``make faults``."""

from __future__ import annotations

from collections.abc import Iterable

RIGHT, TRACEBACK, SILENT, WRONG = "right or clear", "tracebacks", "silent differences", "other"
COLUMNS = (RIGHT, TRACEBACK, SILENT, WRONG)
PROPERTY = "faults"
"""Name under which a test's counts travel with its report, also from other processes."""
EXAMPLES = "examples"
"""The same for the number of examples of a test that keeps no tally."""


class Tally:
    """Collects the outcomes of one test, which fails at the end if any of them is a defect.

    Args:
        counts: Filled with the number of cases by kind and outcome.
    """

    def __init__(self, counts: dict[str, dict[str, int]]) -> None:
        self.counts, self.defects = counts, list[str]()

    def note(self, kind: str, outcome: str, detail: object = "") -> None:
        """Count one case; anything but right or clear is a defect."""
        row = self.counts.setdefault(kind, dict.fromkeys(COLUMNS, 0))
        row[outcome] += 1
        if outcome != RIGHT:
            self.defects.append(f"{kind}: {outcome}: {detail}")
            print(self.defects[-1], flush=True)  # seen at once with pytest -s

    def check(self) -> None:
        """Fail if there was a defect."""
        total = sum(sum(row.values()) for row in self.counts.values())
        shown = "\n".join(self.defects[:20])
        assert not self.defects, f"{len(self.defects)} of {total} cases:\n{shown}"


def make_table(rows: Iterable[tuple[str, dict[str, int]]]) -> list[str]:
    """Return the lines of a table in Markdown, with a last row of sums."""
    sums: dict[str, dict[str, int]] = {}
    for kind, row in rows:
        found = sums.setdefault(kind, dict.fromkeys(COLUMNS, 0))
        for column in COLUMNS:
            found[column] += row.get(column, 0)
    total = {column: sum(row[column] for row in sums.values()) for column in COLUMNS}
    lines = [f"| | cases | {' | '.join(COLUMNS)} |", "|---|---|" + "---|" * len(COLUMNS)]
    for kind, row in [*sorted(sums.items()), ("all", total)]:
        cells = [sum(row.values()), *(row[column] for column in COLUMNS)]
        lines.append(f"| {kind} | {' | '.join(map(str, cells))} |")
    return lines
