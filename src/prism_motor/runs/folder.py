"""A run: one folder with config, provenance, metrics, checkpoints and evaluations."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from prism_motor._console import note
from prism_motor.runs import metrics
from prism_motor.runs.atomic import remove_folder, remove_leftovers, write_json, write_text
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
    DAMAGED,
    EVALUATIONS,
    LAST,
    LOCK,
    METRICS,
    NONFINITE,
    PROVENANCE,
    REPLAY,
    TENSORBOARD,
    CheckpointError,
    RunError,
)
from prism_motor.runs.locks import Lock
from prism_motor.runs.provenance import collect_provenance, cpu_kind
from prism_motor.runs.seals import find_changed, seal_data, seal_files
from prism_motor.runs.shipped import is_shipped, resolve
from prism_motor.runs.verification import verify

_SEALED = (CONFIG, PROVENANCE, METRICS)
"""Files that every checkpoint seals."""

_UNSTARTED = {CONFIG, PROVENANCE, CHECKPOINTS, TENSORBOARD}
"""What a run may leave that was cut before its first checkpoint, besides hidden files."""


class Run:
    """A run folder; use :meth:`create` or :meth:`open`."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.config = config
        self._log = metrics.MetricsLog(path)
        self._lock = Lock(
            path / LOCK,
            f"{path} is being trained by {{owner}}. Wait until it ends, or stop it; prism eval and "
            "prism report work meanwhile.",
        )

    @classmethod
    def create(cls, path: str | Path, config: dict[str, Any]) -> Run:
        """Create a run folder and own it; an existing one must be empty, or cut at its start."""
        folder = cls.check_new(path)
        run = cls(folder, config)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            run.own()
            cls._check_contents(folder)  # somebody else may have been faster
            _clear_unstarted(folder)
            (folder / CHECKPOINTS).mkdir(exist_ok=True)
            write_json(folder / PROVENANCE, collect_provenance())
            write_json(folder / CONFIG, config)
        except OSError as error:
            run.close()
            raise RunError(
                f"Cannot write to {folder}: {error.strerror or error}. Choose another folder."
            ) from error
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def check_new(cls, path: str | Path) -> Path:
        """Reject a folder with contents, unless they are of a run cut before it began."""
        folder = Path(path)
        if folder.exists() and not folder.is_dir():
            raise RunError(f"{folder} is a file. Choose another folder.")
        if folder.exists() and not is_unstarted(folder):
            cls(folder, {})._lock.check()
            cls._check_contents(folder)
        return folder

    @staticmethod
    def _check_contents(folder: Path) -> None:
        if is_unstarted(folder):
            return
        remedy = f"continue the run with --resume {folder}"
        if not (folder / CONFIG).exists():
            remedy = "move its contents away, which are not a run"
        elif not checkpoint_steps(folder / CHECKPOINTS):
            remedy = "move it away: it holds no complete checkpoint to resume from"
        raise RunError(f"{folder} is not empty. Choose another folder, or {remedy}.")

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
            cut = folder.is_dir() and any(folder.iterdir()) and is_unstarted(folder)
            hint = (
                " Its run was cut before it began: start it again with the same command."
                if cut
                else ""
            )
            raise RunError(f"{folder} is not a run folder: it has no {CONFIG}.{hint}")
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise RunError(f"{file} is not readable JSON: {error}.") from error
        if not isinstance(config, dict):
            raise RunError(f"{file} should hold a table of settings, not {type(config).__name__}.")
        return cls(folder, config)

    def own(self) -> None:
        """Become the only process that trains this run, until :meth:`close`."""
        if not self._lock.held:
            self._lock.acquire()
            for name in ("", CHECKPOINTS, NONFINITE, REPLAY):
                remove_leftovers(self.path / name)

    def save(self, step: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> Path:
        """Write a checkpoint, which seals the run's other files, and update ``last``."""
        self._log.sync()  # a checkpoint must not be on disk before the rows that it seals
        seal = seal_files(self.path, _SEALED)
        path = save_checkpoint(self.path / CHECKPOINTS, step, tensors, state, seal)
        try:
            write_text(self.path / LAST, f"{step}\n")
        except OSError as error:
            raise CheckpointError(
                f"Saved {path} but could not update {self.path / LAST}: {error.strerror or error}."
            ) from error
        return path

    def steps(self) -> list[int]:
        """Return the steps of all complete checkpoints, ascending."""
        return checkpoint_steps(self.path / CHECKPOINTS)

    def checkpoint_step(self, step: int | None = None) -> int:
        """Return the step of an existing checkpoint; by default the reported one, or the newest."""
        steps = self.steps()
        if not steps:
            raise RunError(f"{self.path} has no complete checkpoint yet; there is nothing to load.")
        if step is None:
            reported = self.config.get("reported")
            return reported if reported in steps else steps[-1]
        if step not in steps:
            raise RunError(f"{self.path} has no checkpoint {step}; available: {steps}.")
        return step

    def checkpoint_folder(self, step: int) -> Path:
        """Return the folder of a checkpoint."""
        return self.path / CHECKPOINTS / f"{step:08d}"

    def load(self, step: int | None = None) -> Checkpoint:
        """Load a checkpoint; by default the reported one, or the newest."""
        checkpoint = load_checkpoint(self.checkpoint_folder(self.checkpoint_step(step)))
        if CONFIG in find_changed(self.path, checkpoint.run):
            raise RunError(
                f"{self.config_file} was changed after the run had begun, so checkpoint "
                f"{checkpoint.step} does not belong to it. Restore the file, or start a new run "
                f"from it: prism train --config {self.config_file}"
            )
        return checkpoint

    def load_intact(self) -> Checkpoint:
        """Load the newest checkpoint that is intact, and say loudly which ones are not."""
        damaged: dict[int, str] = {}
        for step in reversed(self.steps()):
            try:
                checkpoint = self.load(step)
            except CheckpointError as error:
                damaged[step] = str(error)
                continue
            for newer, why in damaged.items():
                note(f"{why} Resuming from checkpoint {step} instead of {newer}.")
            if PROVENANCE in find_changed(self.path, checkpoint.run):
                note(f"{self.path / PROVENANCE} is missing or has changed.")
            else:
                self._note_other_cpu()
            return checkpoint
        raise RunError(
            f"{self.path} has no intact checkpoint to resume from. {' '.join(damaged.values())} "
            f"Start a new run with the same settings: prism train --config {self.config_file}"
        )

    def _note_other_cpu(self) -> None:
        """Say so if the run began on another kind of CPU, which may round differently."""
        try:
            made = json.loads((self.path / PROVENANCE).read_text(encoding="utf-8"))
            then, now = made["machine"]["cpu"], cpu_kind()
        except (OSError, ValueError, KeyError, TypeError):  # older runs do not say
            return
        if then != now:
            note(
                f"{self.path} began on {then} and goes on here on {now}: not bit for bit, as it "
                "would on the same kind of CPU."
            )

    def rewind(self, checkpoint: Checkpoint) -> None:
        """Return to a checkpoint before training resumes: drop later rows and checkpoints."""
        self._log.close()
        for step in self.steps():
            if step > checkpoint.step:  # damaged: set aside what may still be of use to somebody
                aside = self.path / DAMAGED / f"{step:08d}"
                aside.parent.mkdir(exist_ok=True)
                remove_folder(aside)
                self.checkpoint_folder(step).replace(aside)
        problem = metrics.rewind(self.path, checkpoint.step, checkpoint.run)
        if problem is not None:
            note(f"{problem}.")

    def weights(self, prefix: str, step: int | None = None) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint under ``prefix``, with the prefix removed."""
        return select(self.load(step).tensors, prefix)

    def prune(self, keep: int, also: int | None = None) -> None:
        """Delete all but the newest ``keep`` checkpoints and the one of the step ``also``."""
        for step in self.steps()[:-keep]:
            if step != also:
                remove_folder(self.checkpoint_folder(step))

    def log(self, row: dict[str, Any]) -> None:
        """Append one line to the metrics."""
        self._log.write(row)

    def metrics(self) -> list[dict[str, Any]]:
        """Return all readable rows of metrics; verification says whether there are others."""
        return metrics.read_metrics(self.path / METRICS).rows

    def provenance(self) -> dict[str, Any]:
        """Return where the run comes from, or raise if that is not as it was written."""
        file = self.path / PROVENANCE
        if any(PROVENANCE in problem for problem in verify(self.path, weights=False).problems):
            raise RunError(f"{file} is missing or has changed. Restore it.")
        try:
            data = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"{file} cannot be read: {error}.") from error
        if not isinstance(data, dict):
            raise RunError(f"{file} should hold a table, not {type(data).__name__}.")
        return data

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
        """Write one evaluation's records, sealed."""
        file = self.evaluations_folder() / f"{name}.json"
        write_json(file, seal_data(data))
        return file

    def close(self) -> None:
        """Close the metrics file and give up the ownership of the folder."""
        self._log.close()
        self._lock.release()


def is_unstarted(folder: Path) -> bool:
    """Return whether a folder holds only what a run leaves that was cut at its start, if that."""
    shown = {entry.name for entry in folder.iterdir() if not entry.name.startswith(".")}
    if not shown <= _UNSTARTED or (CONFIG in shown and PROVENANCE not in shown):
        return False  # settings alone were written by somebody else
    checkpoints = folder / CHECKPOINTS
    begun = checkpoints.iterdir() if checkpoints.is_dir() else ()
    return all(entry.name.startswith(".") for entry in begun)


def _clear_unstarted(folder: Path) -> None:
    """Delete the remains of a run that was cut at its start, but for its settings.

    Other processes of a data-parallel run may be reading those; they are replaced as a whole.
    """
    for name in _UNSTARTED - {CONFIG}:
        place = folder / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
