"""Run folders: what a training run writes, and how it is read and verified."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy
from prism_motor.runs.configs import ConfigError, apply_overrides, from_dict, to_dict
from prism_motor.runs.layout import CheckpointError, RunError
from prism_motor.runs.provenance import collect_provenance

if TYPE_CHECKING:
    from prism_motor.runs.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
    from prism_motor.runs.folder import Run

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ConfigError",
    "Run",
    "RunError",
    "apply_overrides",
    "collect_provenance",
    "from_dict",
    "load_checkpoint",
    "save_checkpoint",
    "to_dict",
]

# These need torch, which the command line imports as late as possible.
__getattr__ = lazy(
    __name__,
    {
        "Checkpoint": "checkpoints",
        "load_checkpoint": "checkpoints",
        "save_checkpoint": "checkpoints",
        "Run": "folder",
    },
)
