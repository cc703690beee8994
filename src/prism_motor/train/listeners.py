"""Listeners that receive every row of training metrics: TensorBoard and a progress bar."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor._extras import missing_extra

if TYPE_CHECKING:
    from prism_motor._console import Progress


class TensorBoard:
    """Writes every metric of an update as a scalar.

    Args:
        folder: Folder for the event files.
        updates: Update that the run resumes from; later points of an earlier session are dropped.
    """

    def __init__(self, folder: Path, updates: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise missing_extra("TensorBoard", "locomotion", error) from error
        self.writer = SummaryWriter(str(folder), purge_step=updates + 1 if updates else None)
        self._former = threading.excepthook
        threading.excepthook = self._note_thread

    def __call__(self, row: Mapping[str, float]) -> None:
        """Write one row."""
        for name, value in row.items():
            if name != "update":
                self.writer.add_scalar(name, value, int(row["update"]))

    def _note_thread(self, failed: threading.ExceptHookArgs) -> None:
        """Keep quiet about a full disk in the writer's thread: the next row raises it here."""
        if not isinstance(failed.exc_value, OSError):
            self._former(failed)

    def close(self) -> None:
        """Flush and close the event file."""
        try:
            self.writer.close()
        finally:
            threading.excepthook = self._former


class TrainingProgress:
    """Shows updates on a progress bar, with a one-line summary.

    Args:
        progress: The bar.
        describe: Summarises a row of metrics in one line.
    """

    def __init__(self, progress: Progress, describe: Callable[[Mapping[str, float]], str]) -> None:
        self.progress, self.describe = progress, describe

    def __call__(self, row: Mapping[str, float]) -> None:
        """Show one row."""
        self.progress.step(self.describe(row), int(row["update"]) - self.progress.done)
