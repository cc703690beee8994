"""What can be wrong with a run folder."""

from __future__ import annotations

from prism_motor._checks import PrismError


class RunError(PrismError, RuntimeError):
    """A folder is not the run it should be."""


class CheckpointError(RunError):
    """A checkpoint is missing, damaged or of another kind."""
