"""A run: one folder with config, provenance, metrics, checkpoints and evaluations.

.. code-block:: text

    RUN/
        config.json          resolved settings, enough to repeat the run
        provenance.json      code version, packages, machine, command
        metrics.jsonl        one line an iteration
        checkpoints/<step>/  see :mod:`prism_motor.runs.checkpoints`
        last                 step of the newest checkpoint
        evaluations/         one JSON file an evaluation
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, TextIO

from torch import Tensor

from prism_motor.runs.atomic import write_json, write_text
from prism_motor.runs.checkpoints import (
    Checkpoint,
    checkpoint_steps,
    load_checkpoint,
    save_checkpoint,
)
from prism_motor.runs.errors import CheckpointError, RunError
from prism_motor.runs.provenance import collect_provenance
from prism_motor.runs.shipped import is_shipped, resolve


class Run:
    """A run folder; make one with :meth:`create` or :meth:`open`."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.config = config
        self._metrics: TextIO | None = None

    @classmethod
    def create(cls, path: str | Path, config: dict[str, Any]) -> Run:
        """Make a new run folder; refuses one that already holds something."""
        folder = Path(path)
        if folder.exists() and any(folder.iterdir()):
            kind = "a run" if (folder / "config.json").exists() else "something else"
            raise RunError(
                f"{folder} already holds {kind}. Choose another folder, or continue the run with "
                f"--resume {folder}."
            )
        try:
            (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            write_json(folder / "provenance.json", collect_provenance())
            write_json(folder / "config.json", config)
        except OSError as error:
            raise RunError(
                f"Cannot write to {folder}: {error.strerror or error}. Choose another folder."
            ) from error
        return cls(folder, config)

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open an existing run, by its folder or by the name of a shipped policy."""
        folder = resolve(path)
        file = folder / "config.json"
        if not file.is_file():
            raise RunError(f"{folder} is not a run folder: it has no config.json.")
        try:
            config = json.loads(file.read_text())
        except ValueError as error:
            raise RunError(f"{file} is not readable JSON: {error}.") from error
        return cls(folder, config)

    def save(self, step: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> Path:
        """Write a checkpoint and point ``last`` to it."""
        path = save_checkpoint(self.path / "checkpoints", step, tensors, state)
        try:
            write_text(self.path / "last", f"{step}\n")
        except OSError as error:
            raise CheckpointError(
                f"Saved {path} but could not update {self.path / 'last'}: "
                f"{error.strerror or error}."
            ) from error
        return path

    def steps(self) -> list[int]:
        """Return the steps of all complete checkpoints, ascending."""
        return checkpoint_steps(self.path / "checkpoints")

    def load(self, step: int | None = None) -> Checkpoint:
        """Load a checkpoint; the newest whole one by default."""
        steps = self.steps()
        if not steps:
            raise RunError(
                f"{self.path} has no complete checkpoint yet, so there is nothing to load."
            )
        if step is None:
            step = steps[-1]
        elif step not in steps:
            raise RunError(f"{self.path} has no checkpoint {step}; there are: {steps}.")
        return load_checkpoint(self.path / "checkpoints" / f"{step:08d}")

    def prune(self, keep: int) -> None:
        """Delete all but the newest ``keep`` checkpoints."""
        for step in self.steps()[:-keep]:
            shutil.rmtree(self.path / "checkpoints" / f"{step:08d}", ignore_errors=True)

    def log(self, row: dict[str, Any]) -> None:
        """Append one line to the metrics."""
        if self._metrics is None:
            self._metrics = (self.path / "metrics.jsonl").open("a", encoding="utf-8")
        self._metrics.write(json.dumps(row) + "\n")
        self._metrics.flush()

    def metrics(self) -> list[dict[str, Any]]:
        """Return all metrics; a last line cut in the middle is left out."""
        file = self.path / "metrics.jsonl"
        rows = []
        for line in file.read_text().splitlines() if file.exists() else []:
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        return rows

    def rewind_metrics(self, step: int) -> None:
        """Drop what was logged after ``step``, before the run goes on from there."""
        self.close()
        kept = [row for row in self.metrics() if row["iteration"] <= step]
        write_text(self.path / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in kept))

    def evaluations_folder(self) -> Path:
        """Return the folder that evaluations are written to."""
        if is_shipped(self.path):
            raise RunError(
                f"{self.path.name} comes with prism and stays as it is. Evaluate a copy: "
                f"prism_motor.runs.shipped.working_copy({self.path.name!r})."
            )
        folder = self.path / "evaluations"
        folder.mkdir(exist_ok=True)
        return folder

    def write_evaluation(self, name: str, data: dict[str, Any]) -> Path:
        """Write one evaluation's records."""
        file = self.evaluations_folder() / f"{name}.json"
        write_json(file, data)
        return file

    def close(self) -> None:
        """Close the metrics file."""
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None
