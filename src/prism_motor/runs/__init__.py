"""Run folders: what a training run leaves behind, and how it is trusted again."""

import importlib
from typing import TYPE_CHECKING, Any

from prism_motor.runs.configs import ConfigError, apply_overrides, from_dict, to_dict
from prism_motor.runs.errors import CheckpointError, RunError
from prism_motor.runs.provenance import collect_provenance

if TYPE_CHECKING:
    from prism_motor.runs.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
    from prism_motor.runs.folder import Run

# These need torch, which the command line imports as late as it can.
_LATE = {
    "Checkpoint": "checkpoints",
    "load_checkpoint": "checkpoints",
    "save_checkpoint": "checkpoints",
    "Run": "folder",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(importlib.import_module(f"prism_motor.runs.{_LATE[name]}"), name)
    raise AttributeError(f"module 'prism_motor.runs' has no attribute {name!r}")


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
