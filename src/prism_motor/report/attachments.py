"""What else lies in run folders: films, and the figures and tables of analyses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_motor.report.manipulation import ManipulationRun
from prism_motor.report.records import RunRecord

PICTURES = {".svg": "svg+xml", ".png": "png", ".gif": "gif", ".jpg": "jpeg"}
"""Kinds of figures by the end of their name."""

FILMS = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}
"""Kinds of films by the end of their name."""

FILE_LIMIT, TOTAL_LIMIT = 8_000_000, 48_000_000
"""Bytes of the largest file that a page takes in, and of all of them together."""

AnyRun = RunRecord | ManipulationRun
"""Films and analyses are the same for all kinds of runs."""

FILMS_PER_RUN = 2
"""The newest films of a run are shown."""


@dataclass(frozen=True)
class Attachment:
    """A file that goes into the page."""

    name: str
    """Path as seen from where the report began."""
    kind: str
    """Kind for the browser."""
    data: bytes
    """The whole file."""


@dataclass(frozen=True)
class Grid:
    """A table as an analysis wrote it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Analysis:
    """One folder ``analysis/<command>``."""

    command: str
    """Name of the command that wrote it."""
    source: str
    """Name of the run it is about, empty if it is about several."""
    title: str
    caption: str
    tables: tuple[Grid, ...]
    figures: tuple[Attachment, ...]


class Luggage:
    """Takes files into the page as long as there is room, and notes what stayed behind.

    Args:
        root: Where the report began; names are relative to it.

    Attributes:
        notes: What was left out, and why.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.left = TOTAL_LIMIT
        self.notes: list[str] = []

    def take(self, file: Path, kind: str) -> Attachment | None:
        """Return a file's contents, or note why not."""
        name = file.relative_to(self.root).as_posix()
        try:
            size = file.stat().st_size
            if size > min(FILE_LIMIT, self.left):
                why = "too large" if size > FILE_LIMIT else "more than the page has room for"
                self.notes.append(f"{name} is not shown: {size / 1e6:.1f} MB is {why}.")
                return None
            data = file.read_bytes()
        except OSError as error:
            self.notes.append(f"{name} is not shown: {error.strerror}.")
            return None
        self.left -= size
        return Attachment(name, kind, data)


def find_films(runs: Sequence[AnyRun], luggage: Luggage) -> list[tuple[AnyRun, Attachment]]:
    """Return the newest films of every run."""
    found = []
    for run in runs:
        files = [f for f in sorted((run.path / "videos").glob("*")) if f.suffix.lower() in FILMS]
        hidden = len(files) - FILMS_PER_RUN
        if hidden > 0:
            luggage.notes.append(f"{run.name}/videos has {hidden} more, older films.")
        for file in files[-FILMS_PER_RUN:]:
            film = luggage.take(file, FILMS[file.suffix.lower()])
            if film is not None:
                found.append((run, film))
    return found


def find_analyses(root: Path, runs: Sequence[AnyRun], luggage: Luggage) -> list[Analysis]:
    """Return the analyses of the whole folder, then those of single runs."""
    places = [(root, ""), *((run.path, run.name) for run in runs if run.path != root)]
    return [
        analysis
        for place, source in places
        for folder in sorted((place / "analysis").glob("*"))
        if folder.is_dir()
        for analysis in _read_folder(folder, source, luggage)
    ]


def _read_folder(folder: Path, source: str, luggage: Luggage) -> Iterator[Analysis]:
    """Yield one analysis a JSON file; figures belong to the file whose name they begin with."""
    files = [f for f in sorted(folder.glob("*")) if f.is_file() and not f.name.startswith(".")]
    records = [f for f in files if f.suffix == ".json" and _read(f, luggage) is not None]
    pictures = [f for f in files if f.suffix.lower() in PICTURES]
    if not records and pictures:
        yield _make(folder, source, {}, pictures, luggage)
    for index, record in enumerate(records):
        others = [other.stem for other in records if other is not record]
        own = [
            picture
            for picture in pictures
            if picture.stem.startswith(record.stem)
            or (index == 0 and not any(picture.stem.startswith(stem) for stem in others))
        ]
        yield _make(folder, source, _read(record, luggage) or {}, own, luggage)


def _make(
    folder: Path, source: str, data: dict[str, Any], pictures: Sequence[Path], luggage: Luggage
) -> Analysis:
    shown = _one_of_each(pictures)
    taken = [luggage.take(picture, PICTURES[picture.suffix.lower()]) for picture in shown]
    return Analysis(
        command=folder.name,
        source=source,
        title=str(data.get("title") or folder.name),
        caption=str(data.get("caption") or ""),
        tables=tuple(_tables(data)),
        figures=tuple(picture for picture in taken if picture is not None),
    )


def _one_of_each(pictures: Sequence[Path]) -> list[Path]:
    """Keep one file of a picture that was saved in several formats, SVG before PNG."""
    order = list(PICTURES)
    best: dict[str, Path] = {}
    for picture in sorted(pictures, key=lambda p: (order.index(p.suffix.lower()), p.name)):
        best.setdefault(picture.stem, picture)
    return sorted(best.values())


def _tables(data: dict[str, Any]) -> Iterator[Grid]:
    """Yield everything under ``table`` and ``<name>_table`` that is one."""
    for key, value in data.items():
        if key != "table" and not key.endswith("_table"):
            continue
        try:
            columns = tuple(_word(column) for column in value["columns"])
            rows = tuple(tuple(_word(cell) for cell in row) for row in value["rows"])
        except (KeyError, TypeError):
            continue
        if columns and all(len(row) == len(columns) for row in rows):
            yield Grid(key.removesuffix("table").replace("_", " ").strip(), columns, rows)


def _word(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _read(file: Path, luggage: Luggage) -> dict[str, Any] | None:
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError):
        note = f"{file.relative_to(luggage.root).as_posix()} is not readable JSON."
        if note not in luggage.notes:
            luggage.notes.append(note)
        return None
    return data if isinstance(data, dict) else None
