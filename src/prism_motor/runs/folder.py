"""A run: one folder with config, provenance, metrics, checkpoints and evaluations."""

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
    select,
)
from prism_motor.runs.layout import (
    CHECKPOINTS,
    CONFIG,
    EVALUATIONS,
    LAST,
    METRICS,
    PROVENANCE,
    CheckpointError,
    RunError,
)
from prism_motor.runs.provenance import collect_provenance
from prism_motor.runs.shipped import is_shipped, resolve


class Run:
    """A run folder; use :meth:`create` or :meth:`open`."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.config = config
        self._metrics: TextIO | None = None

    @classmethod
    def create(cls, path: str | Path, config: dict[str, Any]) -> Run:
        """Create a run folder; an existing one must be empty."""
        folder = cls.check_new(path)
        try:
            (folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            write_json(folder / PROVENANCE, collect_provenance())
            write_json(folder / CONFIG, config)
        except OSError as error:
            raise RunError(
                f"Cannot write to {folder}: {error.strerror or error}. Choose another folder."
            ) from error
        return cls(folder, config)

    @staticmethod
    def check_new(path: str | Path) -> Path:
        """Reject a folder that is not empty."""
        folder = Path(path)
        if folder.exists() and not folder.is_dir():
            raise RunError(f"{folder} is a file. Choose another folder.")
        if folder.exists() and any(folder.iterdir()):
            remedy = f"continue the run with --resume {folder}"
            if not (folder / CONFIG).exists():
                remedy = "move its contents away, which are not a run"
            elif not checkpoint_steps(folder / CHECKPOINTS):
                remedy = "delete it: its run was interrupted before the first checkpoint"
            raise RunError(f"{folder} is not empty. Choose another folder, or {remedy}.")
        return folder

    @property
    def config_file(self) -> Path:
        """Path of the settings."""
        return self.path / CONFIG

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open an existing run by its folder or by the name of a shipped policy."""
        folder = resolve(path)
        file = folder / CONFIG
        if not file.is_file():
            raise RunError(f"{folder} is not a run folder: it has no config.json.")
        try:
            config = json.loads(file.read_text())
        except ValueError as error:
            raise RunError(f"{file} is not readable JSON: {error}.") from error
        if not isinstance(config, dict):
            raise RunError(f"{file} should hold a table of settings, not {type(config).__name__}.")
        return cls(folder, config)

    def save(self, step: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> Path:
        """Write a checkpoint and update ``last``."""
        path = save_checkpoint(self.path / CHECKPOINTS, step, tensors, state)
        try:
            write_text(self.path / LAST, f"{step}\n")
        except OSError as error:
            raise CheckpointError(
                f"Saved {path} but could not update {self.path / 'last'}: "
                f"{error.strerror or error}."
            ) from error
        return path

    def steps(self) -> list[int]:
        """Return the steps of all complete checkpoints, ascending."""
        return checkpoint_steps(self.path / CHECKPOINTS)

    def checkpoint_step(self, step: int | None = None) -> int:
        """Return the step of an existing checkpoint; the newest by default."""
        steps = self.steps()
        if not steps:
            raise RunError(f"{self.path} has no complete checkpoint yet; there is nothing to load.")
        if step is None:
            return steps[-1]
        if step not in steps:
            raise RunError(f"{self.path} has no checkpoint {step}; available: {steps}.")
        return step

    def load(self, step: int | None = None) -> Checkpoint:
        """Load a checkpoint; the newest complete one by default."""
        return load_checkpoint(self.path / CHECKPOINTS / f"{self.checkpoint_step(step):08d}")

    def weights(self, prefix: str, step: int | None = None) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint under ``prefix``, with the prefix removed."""
        return select(self.load(step).tensors, prefix)

    def prune(self, keep: int) -> None:
        """Delete all but the newest ``keep`` checkpoints."""
        for step in self.steps()[:-keep]:
            shutil.rmtree(self.path / CHECKPOINTS / f"{step:08d}", ignore_errors=True)

    def log(self, row: dict[str, Any]) -> None:
        """Append one line to the metrics."""
        if self._metrics is None:
            self._metrics = (self.path / METRICS).open("a", encoding="utf-8")
        self._metrics.write(json.dumps(row) + "\n")
        self._metrics.flush()

    def metrics(self) -> list[dict[str, Any]]:
        """Return all metrics, without a truncated last line."""
        file = self.path / METRICS
        rows = []
        for line in file.read_text().splitlines() if file.exists() else []:
            try:
                row = json.loads(line)
            except ValueError:
                break
            if "iteration" in row:  # former name of updates
                row = {"update": row.pop("iteration"), **row}
            rows.append(row)
        return rows

    def rewind_metrics(self, step: int) -> None:
        """Drop rows logged after ``step``, before the run resumes from there."""
        self.close()
        kept = [row for row in self.metrics() if row["update"] <= step]
        write_text(self.path / METRICS, "".join(json.dumps(row) + "\n" for row in kept))

    def evaluations_folder(self) -> Path:
        """Return the folder that evaluations are written to."""
        if is_shipped(self.path):
            raise RunError(
                f"{self.path.name} ships with prism and is read-only. Evaluate a copy: "
                f"prism_motor.runs.shipped.working_copy({self.path.name!r})."
            )
        folder = self.path / EVALUATIONS
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
