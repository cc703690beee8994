"""Metrics for TensorBoard, beside the metrics file."""

from __future__ import annotations

from pathlib import Path

from prism_motor._extras import missing_extra


class TensorBoard:
    """Writes every metric of an iteration as a scalar.

    Args:
        folder: Where the event files go.
        step: Iteration that the run goes on from; later points of an earlier session are dropped.
    """

    def __init__(self, folder: Path, step: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise missing_extra("TensorBoard", "locomotion", error) from error
        self.writer = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def __call__(self, row: dict[str, float]) -> None:
        """Write one iteration."""
        for name, value in row.items():
            if name != "iteration":
                self.writer.add_scalar(name, value, int(row["iteration"]))

    def close(self) -> None:
        """Flush and close the event file."""
        self.writer.close()
