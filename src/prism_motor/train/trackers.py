"""Experiment trackers: metrics, settings, tables and films of a run in TensorBoard, W&B or MLflow.

Trackers write into the run folder unless the user's own configuration names a server, so none needs
an account. One that fails says so once and is left out: it never stops a training.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from prism_motor._console import note
from prism_motor._extras import missing_extra
from prism_motor.runs.atomic import write_json
from prism_motor.runs.layout import METRICS, TENSORBOARD, TRACKERS
from prism_motor.train.listeners import TensorBoard

TrackerName = Literal["tensorboard", "wandb", "mlflow"]


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker is told about a run when a session begins."""

    folder: Path
    """The run folder."""
    settings: Mapping[str, Any]
    """The run's settings."""
    updates: int = 0
    """Update that the run resumes from."""
    known: Mapping[str, Any] = field(default_factory=dict)
    """What the tracker remembered in an earlier session."""


class Tracker(Protocol):
    """Where a run is shown besides its folder; made from a :class:`TrackedRun`."""

    memory: dict[str, Any]
    """What the next session must know: the identity of the run, where there is one."""

    def log(self, row: Mapping[str, float]) -> None:
        """Show a row of metrics."""
        ...

    def show_table(self, name: str, text: str, update: int) -> None:
        """Show a table of an evaluation."""
        ...

    def show_film(self, file: Path, update: int) -> None:
        """Show a film."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class TensorBoardTracker:
    """Event files in the run folder.

    Args:
        run: The run.
    """

    def __init__(self, run: TrackedRun) -> None:
        self.memory: dict[str, Any] = {}
        self._board = TensorBoard(run.folder / TENSORBOARD, run.updates)
        self._text("config", json.dumps(run.settings, indent=2), run.updates)

    def log(self, row: Mapping[str, float]) -> None:
        """Write a scalar per metric."""
        self._board(row)

    def show_table(self, name: str, text: str, update: int) -> None:
        """Write a text."""
        self._text(name, text, update)

    def show_film(self, file: Path, update: int) -> None:
        """Name the file, which lies beside the events; a copy of each would fill the disk."""
        self._board.writer.add_text("film", str(file.name), update)

    def _text(self, name: str, text: str, update: int) -> None:
        indented = "".join(f"    {line}\n" for line in text.splitlines())  # code, in Markdown
        self._board.writer.add_text(name, indented, update)

    def close(self) -> None:
        """Flush and close the event file."""
        self._board.close()


class WandbTracker:
    """A run of Weights & Biases; offline in the run folder unless ``WANDB_MODE`` says otherwise.

    Args:
        run: The run.
    """

    def __init__(self, run: TrackedRun) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # nothing leaves unasked
        import wandb

        self._wandb = wandb
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        self._run: Any = wandb.init(
            id=run.known.get("id") or uuid.uuid4().hex[:8],
            resume=None if mode == "offline" else "allow",  # wandb sync joins them by identity
            project=os.environ.get("WANDB_PROJECT", "prism"),
            name=run.folder.name,
            dir=str(run.folder),
            config=dict(run.settings),
            mode=mode,
            settings=wandb.Settings(silent=True, console="off"),
        )
        # Charts over updates: rows that a resumed run repeats are the same and fall on the former.
        self._run.define_metric("update")
        self._run.define_metric("*", step_metric="update")
        self.memory: dict[str, Any] = {"id": self._run.id}

    def log(self, row: Mapping[str, float]) -> None:
        """Send a row."""
        self._run.log(dict(row))

    def show_table(self, name: str, text: str, update: int) -> None:
        """Send a table of its lines."""
        table = self._wandb.Table(columns=[name], data=[[line] for line in text.splitlines()])
        self._run.log({name: table, "update": update})

    def show_film(self, file: Path, update: int) -> None:
        """Send a film."""
        self._run.log({"film": self._wandb.Video(str(file), format="mp4"), "update": update})

    def close(self) -> None:
        """Finish the session."""
        self._run.finish()


class MlflowTracker:
    """A run of MLflow; in the run folder unless ``MLFLOW_TRACKING_URI`` names a server.

    Args:
        run: The run.
    """

    def __init__(self, run: TrackedRun) -> None:
        from mlflow.entities import Metric  # type: ignore[import-not-found]
        from mlflow.tracking import MlflowClient  # type: ignore[import-not-found]

        self._metric = Metric
        server = os.environ.get("MLFLOW_TRACKING_URI")
        if server is None:  # MLflow would rather have a database, which is one more thing to run
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            server = (run.folder / "mlflow").resolve().as_uri()
        self._client: Any = MlflowClient(server)
        self._id: str = run.known.get("id") or self._begin(run.folder.name)
        self._client.log_dict(self._id, dict(run.settings), "config.json")
        self.memory: dict[str, Any] = {"id": self._id}

    def _begin(self, name: str) -> str:
        title = os.environ.get("MLFLOW_EXPERIMENT_NAME", "prism")
        found = self._client.get_experiment_by_name(title)
        experiment = found.experiment_id if found else self._client.create_experiment(title)
        return self._client.create_run(experiment, run_name=name).info.run_id

    def log(self, row: Mapping[str, float]) -> None:
        """Send a row in one call."""
        step = int(row["update"])
        metrics = [
            # A fixed time: a row that is repeated after a resume is the same entry.
            self._metric(_mlflow_name(name), float(value), step, step)
            for name, value in row.items()
            if name != "update"
        ]
        self._client.log_batch(self._id, metrics=metrics)

    def show_table(self, name: str, text: str, update: int) -> None:
        """Store a text."""
        self._client.log_text(self._id, text, f"{name}-{update:08d}.txt")

    def show_film(self, file: Path, update: int) -> None:
        """Store a film."""
        self._client.log_artifact(self._id, str(file), "films")

    def close(self) -> None:
        """Mark the session as ended."""
        self._client.set_terminated(self._id)


def _mlflow_name(name: str) -> str:
    """Return a name without characters that MLflow refuses."""
    return re.sub(r"[^\w\-. /]", "_", name)


TRACKERS_BY_NAME: dict[str, Callable[[TrackedRun], Tracker]] = {
    "tensorboard": TensorBoardTracker,
    "wandb": WandbTracker,
    "mlflow": MlflowTracker,
}
"""Trackers by name."""


def check_trackers(names: Sequence[str]) -> None:
    """Raise before any work if the package of a tracker is missing."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            extra = "locomotion" if name == "tensorboard" else name
            raise missing_extra(f"--tracker {name}", extra, ImportError(name=name))


class Trackers:
    """All trackers of a run.

    Args:
        run: The run folder.
        settings: The run's settings.
        names: Which ones; ``None``: those of the earlier sessions, at first TensorBoard.
        updates: Update that the run resumes from.
    """

    def __init__(
        self,
        run: Path,
        settings: Mapping[str, Any],
        names: Sequence[str] | None = None,
        updates: int = 0,
    ) -> None:
        known = read_memory(run)
        chosen = (known or ("tensorboard",)) if names is None else dict.fromkeys(names)
        self._trackers: dict[str, Tracker] = {}
        memory = dict(known)
        for name in chosen:
            with self._guard(name):
                made = TRACKERS_BY_NAME[name](
                    TrackedRun(run, settings, updates, known.get(name, {}))
                )
                self._trackers[name] = made
                memory[name] = made.memory
        if memory != known and names is not None:  # of the default there is nothing to remember
            write_json(run / TRACKERS, memory)

    def __call__(self, row: Mapping[str, float]) -> None:
        """Show a row of metrics in all of them."""
        self._each(lambda tracker: tracker.log(row))

    def show_table(self, name: str, text: str, update: int) -> None:
        """Show a table in all of them."""
        self._each(lambda tracker: tracker.show_table(name, text, update))

    def show_film(self, file: Path, update: int) -> None:
        """Show a film in all of them."""
        self._each(lambda tracker: tracker.show_film(file, update))

    def close(self) -> None:
        """Close all of them."""
        self._each(lambda tracker: tracker.close())
        self._trackers.clear()

    def _each(self, act: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self._trackers.items()):
            with self._guard(name):
                act(tracker)

    @contextmanager
    def _guard(self, name: str) -> Iterator[None]:
        """Leave out a tracker that fails."""
        try:
            yield
        except Exception as error:  # hours of training are worth more than a chart
            note(
                f"{name} failed ({type(error).__name__}: {error}); the run goes on without it. All "
                f"metrics are in {METRICS}."
            )
            self._trackers.pop(name, None)


def read_memory(run: Path) -> dict[str, dict[str, Any]]:
    """Return which trackers a run has, and what each must remember."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((run / TRACKERS).read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return {name: found[name] for name in found if name in TRACKERS_BY_NAME}
    return {}
