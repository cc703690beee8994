"""``prism report``: everything about some runs on one page."""

from __future__ import annotations

import shlex
from pathlib import Path

from tyro.conf import Positional


def report(
    folder: Positional[Path],
    out: Path | None = None,
    reference: str = "mlp-larger",
    title: str | None = None,
) -> None:
    """Write a page about all runs in a folder: what they show, tables, curves, films, provenance.

    Beside the page go its numbers (.json) and its tables (.md).

    Args:
        folder: Where to look for run folders, at any depth.
        out: The page; default: FOLDER/report.html.
        reference: Arm that the others are compared with.
        title: Heading of the page; default: the folder's name.
    """
    from prism_motor.report.build import write_report
    from prism_motor.report.export import text_table
    from prism_motor.report.words import findings, lead

    words = ["prism", "report", str(folder)]
    words += ["--out", str(out)] if out else []
    words += ["--reference", reference] if reference != "mlp-larger" else []
    words += ["--title", title] if title else []
    made = write_report(folder, out, reference=reference, title=title, command=shlex.join(words))
    if made.results:
        print(lead(made.results))
    for results in made.results:
        print(f"\n{results.section.title}")
        print("\n".join(f"- {subject}{finding}" for subject, finding in findings(results)))
    for chapter in made.manipulation:
        if chapter.tables:
            print(f"\n{chapter.title}\n{text_table(chapter.tables[0])}")
        print("\n".join(f"- {subject}{finding}" for subject, finding in chapter.findings))
    if made.problems:
        print(f"\n{len(made.problems)} things are missing or were left out; the page lists them.")
    print(f"\n{made.page}  {made.page.stat().st_size / 1e6:.1f} MB\n{made.data}\n{made.markdown}")
