"""Reports of the runs under results/ against the tables that were committed with them.

Tables must be equal byte for byte, but for the names of arms, which were different then, for the
hashes of checkpoints, which are not kept, and for the seals of files, which there were none of.
"""

import re
from pathlib import Path

import pytest

from prism_motor.report import write_report

RESULTS = Path(__file__).parents[2] / "results"

WALKING = {"mlp-larger": "mlp-matched", "gated": "prism", "residual": "prism-residual"}
HANDLING = {"mlp-larger": "mlp-large", "mlp": "mlp-matched"}


def read_tables(text):
    """Return (section, rows) of all tables of a Markdown report."""
    found, section = [], ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("### "):
            found.append((section, []))
        elif line.startswith("|"):
            found[-1][1].append(line)
    return found


def rename(text, names):
    """Return text with present names of arms; folders keep theirs."""
    longest = "|".join(sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w/-])({longest})(?![\w-])", lambda found: names[found.group()], text)


def without_checkpoints(row):
    cells = row.split(" | ")
    return " | ".join([*cells[:5], *cells[6:]])


@pytest.mark.parametrize(
    ("folder", "reference", "names", "count"),
    [
        ("table1-short", None, WALKING, 8),
        ("degrees-short", "degree1", WALKING, 8),
        ("when-short", None, WALKING, 16),
        ("libero-contact-poses", "linear", HANDLING, 7),
        ("libero-stove-images", "linear", HANDLING, 3),
        ("libero-stove-state", None, HANDLING, 5),
    ],
)
def test_reports_give_the_committed_tables(tmp_path, folder, reference, names, count):
    written = write_report(RESULTS / folder, tmp_path / "page.html", reference=reference)
    assert written.problems == ()
    made = read_tables(written.markdown.read_text())
    committed = read_tables((RESULTS / folder / "report.md").read_text())
    assert len(committed) == count
    for section, rows in committed:
        wanted = [rename(row, names) for row in rows]
        if "checkpoint sha256" in rows[0]:  # one table per task now, where there was one of all
            rows = [row.replace(" not sealed |", " |", 1) for _, found in made for row in found]
            own = [without_checkpoints(row) for row in rows]
            assert all(without_checkpoints(row) in own for row in wanted[2:])
        else:
            assert (rename(section, names), wanted) in made
    # Every sentence about a comparison is there, too.
    sentences = written.markdown.read_text()
    for line in (RESULTS / folder / "report.md").read_text().splitlines():
        if line.startswith("- **"):
            assert rename(line, names) in sentences
