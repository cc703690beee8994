"""Runs that other campaigns have made already: copied instead of trained again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from prism_motor.campaigns.planned import PlannedRun
from prism_motor.runs.atomic import sync_folder
from prism_motor.runs.checkpoints import checkpoint_steps
from prism_motor.runs.configs import ConfigError

_KEPT = ("config.json", "provenance.json", "metrics.jsonl", "last", "checkpoints", "evaluations")


def find_equal(run: PlannedRun, folders: Sequence[Path]) -> Path | None:
    """Return a finished run of exactly the same config: arm, seed, settings, everything."""
    for folder in folders:
        for file in sorted(folder.rglob("config.json")):
            if _is_equal(run, file.parent):
                return file.parent
    return None


def _is_equal(run: PlannedRun, path: Path) -> bool:
    steps = checkpoint_steps(path / "checkpoints")
    if not steps or steps[-1] != run.total:
        return False
    try:
        seed = json.loads((path / "config.json").read_text()).get("seed")
        return seed == run.seed and run.check_config(path) is None
    except (ConfigError, ValueError, AttributeError):
        return False


def copy_run(source: Path, target: Path) -> None:
    """Copy what a run is, with its provenance; the copy is whole or not there."""
    temporary = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for name in _KEPT:
        if (source / name).is_dir():
            ignored = shutil.ignore_patterns(".*")
            shutil.copytree(source / name, temporary / name, ignore=ignored)
        elif (source / name).is_file():
            shutil.copy2(source / name, temporary / name)
    temporary.replace(target)
    sync_folder(target.parent)
