"""The report as one page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_motor._page import render_page
from prism_motor.report.attachments import AttachedAnalysis, Attachment
from prism_motor.report.chapters import Chapter
from prism_motor.report.collect import RunRecord
from prism_motor.report.tables import Table


@dataclass(frozen=True)
class ReportContents:
    """The contents of the page."""

    title: str
    """Heading."""
    intro: str
    """A paragraph before the numbers, plain text; may be empty."""
    summary: str
    """What was run."""
    chapters: Sequence[Chapter]
    """One chapter per task, and those about several tasks together."""
    videos: Sequence[tuple[RunRecord, Attachment]]
    """Videos with the runs they show."""
    analyses: Sequence[AttachedAnalysis]
    """Results of analyses."""
    tuning: Sequence[Table]
    """Tuning before the comparison."""
    problems: Sequence[str]
    """What is missing or was left out."""
    command: str
    """Command that reproduces this page."""
    made: str
    """When and by which version it was made."""


def render_report(contents: ReportContents) -> str:
    """Return the page as text."""
    shown = vars(contents) | {
        "videos": [
            {"file": video, "caption": _caption(run, video)} for run, video in contents.videos
        ]
    }
    return render_page("report.html", script="report.js", **shown)


def _caption(run: RunRecord, video: Attachment) -> str:
    step = re.match(r"\d{8}", Path(video.name).name)
    update = f", update {int(step.group())}" if step else ""
    return f"{run.spec.caption(run.config)}{update}"
