"""Run folders: what a training run leaves behind, and how it is trusted again."""

from prism.runs.checkpoints import Checkpoint, CheckpointError, load_checkpoint, save_checkpoint
from prism.runs.configs import ConfigError, from_dict, to_dict
from prism.runs.folder import Run, RunError
from prism.runs.provenance import collect_provenance

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ConfigError",
    "Run",
    "RunError",
    "collect_provenance",
    "from_dict",
    "load_checkpoint",
    "save_checkpoint",
    "to_dict",
]
