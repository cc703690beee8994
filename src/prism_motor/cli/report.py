"""``prism report``: everything about some runs on one page."""

from __future__ import annotations

import shlex
from pathlib import Path

from tyro.conf import Positional


def report(
    folder: Positional[Path],
    out: Path | None = None,
    reference: str | None = None,
    title: str | None = None,
) -> None:
    """Write a page about all runs in a folder: what they show, tables, curves, videos, provenance.

    Beside the page go its numbers (.json) and its tables (.md).

    Args:
        folder: Where to look for run folders, at any depth.
        out: The page; default: FOLDER/report.html.
        reference: Arm that the others are compared with; default: mlp-matched.
        title: Heading of the page; default: the folder's name.
    """
    from prism_motor._console import count
    from prism_motor.report import terminal_table, write_report

    command = ["prism", "report", str(folder)]
    command += ["--out", str(out)] if out else []
    command += ["--reference", reference] if reference else []
    command += ["--title", title] if title else []
    made = write_report(folder, out, reference=reference, title=title, command=shlex.join(command))
    print(made.summary)
    for chapter in made.chapters:
        print(f"\n{chapter.title}")
        if chapter.main:
            print(terminal_table(chapter.main))
        print("\n".join(f"- {subject}{finding}" for subject, finding in chapter.findings))
    if made.problems:
        verb = "is missing or was" if len(made.problems) == 1 else "are missing or were"
        print(f"\n{count(len(made.problems), 'thing')} {verb} left out; the page lists them.")
    print(f"\n{made.page}  {made.page.stat().st_size / 1e6:.1f} MB\n{made.data}\n{made.markdown}")
