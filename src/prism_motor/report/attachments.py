"""Other contents of run folders: videos, and the figures and tables of analyses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._console import count, file_size
from prism_motor.report.tables import MISSING, Cell, Table
from prism_motor.runs.boundary import Boundary
from prism_motor.runs.layout import ANALYSIS, VIDEOS

if TYPE_CHECKING:
    from prism_motor.report.collect import RunRecord

IMAGES = {".svg": "svg+xml", ".png": "png", ".gif": "gif", ".jpg": "jpeg"}
"""Types of figures by file extension."""

VIDEO_KINDS = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}
"""Types of videos by file extension."""

FILE_LIMIT, TOTAL_LIMIT = 8_000_000, 48_000_000
"""Largest size in bytes of a single embedded file, and of all of them together."""

VIDEOS_PER_RUN = 2
"""Number of videos to show per run, the newest ones."""


@dataclass(frozen=True)
class Attachment:
    """A file embedded in the page."""

    name: str
    """Path relative to the root of the report."""
    kind: str
    """Media type."""
    data: bytes
    """Contents of the file."""


@dataclass(frozen=True)
class AttachedAnalysis:
    """One folder ``analysis/<command>``."""

    source: str
    """Name of the run it is about, empty if it is about several."""
    title: str
    """Heading."""
    caption: str
    """What it shows."""
    tables: tuple[Table, ...]
    """Its tables, as written by the analysis."""
    figures: tuple[Attachment, ...]
    """Its figures."""


class AttachmentBudget:
    """Embeds files in the page while there is room, and notes what was left out.

    Args:
        root: Root of the report; names are relative to it.

    Attributes:
        notes: What was left out, and why.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.left = TOTAL_LIMIT
        self._boundary = Boundary(root)
        self.notes = self._boundary.notes

    def holds(self, file: Path) -> bool:
        """Return whether a file lies in the folder that the report is about, or note it."""
        return self._boundary.holds(file)

    def take(self, file: Path, kind: str) -> Attachment | None:
        """Return a file as an attachment, or note why it is left out."""
        name = file.relative_to(self.root).as_posix()
        try:
            size = file.stat().st_size
            if size > min(FILE_LIMIT, self.left):
                why = "too large" if size > FILE_LIMIT else "more than the page has room for"
                self.notes.append(f"{name} is not shown: {file_size(size)} is {why}.")
                return None
            data = file.read_bytes()
        except OSError as error:
            self.notes.append(f"{name} is not shown: {error.strerror}.")
            return None
        self.left -= size
        return Attachment(name, kind, data)


def find_videos(
    runs: Sequence[RunRecord], budget: AttachmentBudget
) -> list[tuple[RunRecord, Attachment]]:
    """Return the newest videos of every run."""
    found = []
    for run in runs:
        files = [
            file
            for file in sorted((run.path / VIDEOS).glob("*"))
            if budget.holds(file) and file.suffix.lower() in VIDEO_KINDS
        ]
        hidden = len(files) - VIDEOS_PER_RUN
        if hidden > 0:
            budget.notes.append(
                f"{run.name}/{VIDEOS} has {count(hidden, 'older video')}, not shown."
            )
        for file in files[-VIDEOS_PER_RUN:]:
            video = budget.take(file, VIDEO_KINDS[file.suffix.lower()])
            if video is not None:
                found.append((run, video))
    return found


def find_analyses(
    root: Path, runs: Sequence[RunRecord], budget: AttachmentBudget
) -> list[AttachedAnalysis]:
    """Return the analyses of the whole folder, then those of single runs."""
    places = [(root, ""), *((run.path, run.name) for run in runs if run.path != root)]
    return [
        analysis
        for place, source in places
        for folder in sorted((place / ANALYSIS).glob("*"))
        if budget.holds(folder) and folder.is_dir()
        for analysis in _read_folder(folder, source, budget)
    ]


def _read_folder(folder: Path, source: str, budget: AttachmentBudget) -> Iterator[AttachedAnalysis]:
    """Yield one analysis per JSON file; figures belong to the file whose name they start with."""
    files = [
        file
        for file in sorted(folder.glob("*"))
        if budget.holds(file) and file.is_file() and not file.name.startswith(".")
    ]
    records = [f for f in files if f.suffix == ".json" and _read(f, budget) is not None]
    images = [f for f in files if f.suffix.lower() in IMAGES]
    if not records and images:
        yield _make(folder, source, {}, images, budget)
    for index, record in enumerate(records):
        others = [other.stem for other in records if other is not record]
        own = [
            image
            for image in images
            if image.stem.startswith(record.stem)
            or (index == 0 and not any(image.stem.startswith(stem) for stem in others))
        ]
        yield _make(folder, source, _read(record, budget) or {}, own, budget)


def _make(
    folder: Path,
    source: str,
    data: dict[str, Any],
    images: Sequence[Path],
    budget: AttachmentBudget,
) -> AttachedAnalysis:
    shown = _one_of_each(images)
    taken = [budget.take(image, IMAGES[image.suffix.lower()]) for image in shown]
    return AttachedAnalysis(
        source=source,
        title=str(data.get("title") or folder.name),
        caption=str(data.get("caption") or ""),
        tables=tuple(_tables(data)),
        figures=tuple(image for image in taken if image is not None),
    )


def _one_of_each(images: Sequence[Path]) -> list[Path]:
    """Keep one file per figure that was saved in several formats, SVG before PNG."""
    order = list(IMAGES)
    best: dict[str, Path] = {}
    for image in sorted(images, key=lambda p: (order.index(p.suffix.lower()), p.name)):
        best.setdefault(image.stem, image)
    return sorted(best.values())


def _tables(data: dict[str, Any]) -> Iterator[Table]:
    """Yield all valid tables under ``table`` and ``<name>_table``."""
    for key, value in data.items():
        if key != "table" and not key.endswith("_table"):
            continue
        try:
            columns = tuple(_text(column) for column in value["columns"])
            rows = tuple(tuple(Cell(_text(cell)) for cell in row) for row in value["rows"])
        except (KeyError, TypeError):
            continue
        if columns and all(len(row) == len(columns) for row in rows):
            yield Table(key.removesuffix("table").replace("_", " ").strip(), columns, rows)


def _text(value: Any) -> str:
    if value is None:
        return MISSING
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _read(file: Path, budget: AttachmentBudget) -> dict[str, Any] | None:
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError):
        note = f"{file.relative_to(budget.root).as_posix()} is not readable JSON."
        if note not in budget.notes:
            budget.notes.append(note)
        return None
    return data if isinstance(data, dict) else None
