"""The folder of a laboratory: settings, one line per finished cell, and the confirmation.

.. code-block:: text

    FOLDER/
        lab.json            settings that all cells share, versions, where it was made
        cells.jsonl         one line per finished cell, appended; and one per problem's structure
        confirmation.json   what was confirmed, and when it was begun and finished
        index.html, report.md, summary.json, map.png   what ``prism lab report`` writes
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from prism_motor._checks import PrismError
from prism_motor._console import count
from prism_motor.runs import collect_provenance
from prism_motor.runs.atomic import write_json, write_text
from prism_motor.runs.layout import LOCK
from prism_motor.runs.locks import Lock
from prism_motor.runs.records import portable
from prism_motor.studies.lab.cells import CellKey, CellResult, LabFit
from prism_motor.studies.lab.config import TRAINING, LabConfig
from prism_motor.studies.lab.structure import Structure

SCHEMA = 1
"""Version of the records; increased when problems, arms or training change what a cell means."""

_SETTINGS, _CELLS, _CONFIRMATION = "lab.json", "cells.jsonl", "confirmation.json"


class LabError(PrismError):
    """A laboratory's folder cannot be used as asked."""


class LabRecords:
    """All that is known in one folder.

    Args:
        folder: The folder; it must hold a laboratory unless a config is given.
        config: Settings to work with; a new folder gets them, an old one must have the same
            training. Without one the folder is only read.
    """

    def __init__(self, folder: Path, config: LabConfig | None = None) -> None:
        self.folder = folder
        self.about = self._open(config)
        self.cells: dict[CellKey, CellResult] = {}
        self.structures: dict[str, Structure] = {}
        self._read(mend=config is not None)

    def cell(self, key: CellKey) -> CellResult:
        """Return what is known about a cell."""
        return self.cells.get(key, CellResult())

    def add(self, key: CellKey, result: CellResult) -> None:
        """Record what was found about a cell; it is on disk when this returns."""
        self._append({**asdict(key), **asdict(result)})
        self.cells.setdefault(key, CellResult()).add(result)

    def add_structure(self, problem: str, found: Structure) -> None:
        """Record the structure of a problem."""
        self._append({"problem": problem, "structure": asdict(found)})
        self.structures[problem] = found

    def confirmation(self) -> dict[str, Any] | None:
        """Return what was confirmed, if anything."""
        file = self.folder / _CONFIRMATION
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None

    def begin_confirmation(self, plan: dict[str, Any]) -> None:
        """Note that a confirmation begins; an unfinished one of the same plan continues."""
        found = self.confirmation()
        if found is None:
            write_json(self.folder / _CONFIRMATION, {"begun": _now(), "finished": None, **plan})
            return
        if found["finished"]:
            raise LabError(
                f"{self.folder} was confirmed on {found['finished']}; a second look at the same "
                "seeds confirms nothing. Confirm another laboratory: prism lab run NEW."
            )
        if any(found[name] != value for name, value in plan.items()):
            raise LabError(
                f"{self.folder} has an unfinished confirmation of other cells or seeds, begun on "
                f"{found['begun']}; only that one can go on: {_describe(found)}."
            )

    def finish_confirmation(self) -> None:
        """Note that all seeds of the confirmation are done."""
        found = self.confirmation()
        assert found is not None
        write_json(self.folder / _CONFIRMATION, {**found, "finished": _now()})

    def config(self) -> LabConfig:
        """Return the settings with which the folder was last run.

        All problems are those there were at that time, whose structure was measured first.
        """
        config = _stored_config(self.about)
        return config if config.problems else replace(config, problems=tuple(self.structures))

    def _open(self, config: LabConfig | None) -> dict[str, Any]:
        file = self.folder / _SETTINGS
        if not file.is_file():
            if config is None:
                raise LabError(f"{self.folder} holds no laboratory. Make one: prism lab run FOLDER")
            provenance = portable(collect_provenance())
            about = {"schema": SCHEMA, "provenance": provenance, "config": asdict(config)}
            write_json(file, about)
            return about
        about = json.loads(file.read_text(encoding="utf-8"))
        if about["schema"] != SCHEMA:
            raise LabError(
                f"{self.folder} was made by another version of prism (schema {about['schema']}, "
                f"this one has {SCHEMA}). Give a new folder."
            )
        if config is not None:
            self._check_same(about, config)
            about["config"] = asdict(config)
            write_json(file, about)
        return about

    def _check_same(self, about: dict[str, Any], config: LabConfig) -> None:
        """Refuse to mix cells that were trained differently, or with other packages."""
        for name in TRAINING:
            stored = about["config"][name]
            if stored != getattr(config, name):
                raise LabError(
                    f"{self.folder} has cells with {name} = {stored}, not {getattr(config, name)}. "
                    "Use that value, or give a new folder."
                )
        if self.confirmation() and replace(config, jobs=1) != replace(
            _stored_config(about), jobs=1
        ):
            raise LabError(
                f"{self.folder} has a confirmation, so its settings are final. Give a new folder."
            )
        before, now = about["provenance"]["packages"], collect_provenance()["packages"]
        for name in ("torch", "numpy", "mujoco"):
            if before[name] != now[name]:
                raise LabError(
                    f"{self.folder} has cells made with {name} {before[name]}, and here is "
                    f"{now[name]}. Use that version, or give a new folder."
                )

    def _read(self, *, mend: bool) -> None:
        file = self.folder / _CELLS
        if not file.is_file():
            return
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):  # cut by a kill while it was written
            lines.pop()
            if mend:
                write_text(file, "".join(lines))
        for number, line in enumerate(lines, start=1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise LabError(
                    f"{file}, line {number} is damaged ({error}). Delete the line to do that cell "
                    "again."
                ) from error

    def _take(self, row: dict[str, Any]) -> None:
        if "structure" in row:
            self.structures[row["problem"]] = Structure(**row["structure"])
            return
        key = CellKey(row["problem"], row["arm"], row["size"], row["samples"])
        tuning, seeds = ([LabFit(**fit) for fit in row[name]] for name in ("tuning", "seeds"))
        result = CellResult(row["parameters"], tuning, seeds, row["seconds"])
        self.cells.setdefault(key, CellResult()).add(result)

    def _append(self, row: dict[str, Any]) -> None:
        with (self.folder / _CELLS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _stored_config(about: dict[str, Any]) -> LabConfig:
    stored = dict(about["config"])
    lists = {name: tuple(v) for name, v in stored.items() if isinstance(v, list)}
    return LabConfig(**{**stored, **lists})


def _describe(plan: dict[str, Any]) -> str:
    return f"{count(len(plan['cells']), 'cell')}, seeds {plan['seeds'][0]} to {plan['seeds'][-1]}"


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def own_folder(folder: Path) -> Lock:
    """Return the ownership of a laboratory's folder, which is created if it is new."""
    if folder.exists() and not (folder / _SETTINGS).is_file():
        if not folder.is_dir():
            raise LabError(f"{folder} is a file; give a folder.")
        if any(one.name != LOCK for one in folder.iterdir()):
            raise LabError(f"{folder} holds something else. Give a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return Lock(folder / LOCK, f"{folder} is in use by {{owner}}. Wait until it has finished.")
