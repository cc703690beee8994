"""Checkpoints: a folder of safetensors and JSON with a marker that is written last.

.. code-block:: text

    checkpoints/00000120/
        tensors.safetensors    every tensor by name
        state.json             counters and everything else that is not a tensor
        complete.json          schema version and seals; without it, no valid checkpoint

The marker seals both files, itself and, as they were at that time, the files of the run around it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from prism_motor._extras import missing_extra
from prism_motor.runs.atomic import atomic_folder, write_json
from prism_motor.runs.layout import CheckpointError
from prism_motor.runs.seals import (
    SEALED,
    Seal,
    find_changed,
    is_intact,
    is_seal,
    seal_data,
    seal_files,
)

SCHEMA = 1
"""Version of the layout; increased when it changes."""

TENSORS, STATE, _MARKER = "tensors.safetensors", "state.json", "complete.json"


@dataclass(frozen=True)
class Marker:
    """The contents of complete.json."""

    step: int
    """Update after which the checkpoint was saved."""
    files: Seal
    """Seal of the checkpoint's own files."""
    run: Seal = field(default_factory=dict)
    """Seal of the run's files at that time; empty in checkpoints of earlier versions."""


@dataclass(frozen=True)
class Checkpoint:
    """A saved training state."""

    step: int
    """Update after which it was saved."""
    tensors: dict[str, Tensor]
    """Every tensor by name."""
    state: dict[str, Any]
    """Everything else."""
    run: Seal = field(default_factory=dict)
    """Seal of the run's files at that time."""


def save_checkpoint(
    folder: Path,
    step: int,
    tensors: dict[str, Tensor],
    state: dict[str, Any],
    run: Seal | None = None,
) -> Path:
    """Write a checkpoint under a temporary name and rename it once it is complete and on disk.

    Args:
        folder: Folder of all checkpoints.
        step: Number of finished updates.
        tensors: Every tensor by name.
        state: Everything else.
        run: Seal of the run's files.
    """
    try:
        from safetensors import SafetensorError
        from safetensors.torch import save_file
    except ImportError as error:
        raise missing_extra("Saving checkpoints", "locomotion", error) from error
    final = folder / f"{step:08d}"
    copies = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
    try:
        with atomic_folder(final) as temporary:
            save_file(copies, temporary / TENSORS)
            write_json(temporary / STATE, state)
            files = seal_files(temporary, (TENSORS, STATE))
            marker = {"schema": SCHEMA, "step": step, "files": files, "run": run or {}}
            write_json(temporary / _MARKER, seal_data(marker))
    except (OSError, SafetensorError) as error:  # the latter is how safetensors says "disk full"
        raise CheckpointError(
            f"Could not save checkpoint {final.name} in {folder}: "
            f"{getattr(error, 'strerror', None) or error}. Earlier checkpoints are intact; free "
            "disk space or fix the permissions, then resume."
        ) from error
    return final


def read_marker(path: Path) -> Marker:
    """Read the marker of a checkpoint, without checking what it seals."""
    marker = path / _MARKER
    if not marker.is_file():
        raise CheckpointError(
            f"{path} is not a complete checkpoint: it has no {_MARKER}, which was deleted or not "
            "copied. Use an earlier checkpoint."
        )
    try:
        contents = json.loads(marker.read_text(encoding="utf-8"))
        schema, step, files = contents["schema"], contents["step"], contents["files"]
        run = contents.get("run", {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{marker} is not readable. Use an earlier checkpoint.") from error
    if schema != SCHEMA:
        raise CheckpointError(
            f"{path} has layout version {schema}; this version of prism reads {SCHEMA}. "
            "Load it with the version of prism that wrote it."
        )
    # Earlier versions sealed neither the run nor the marker.
    if not (is_intact(contents) or (SEALED not in contents and "run" not in contents)):
        raise CheckpointError(f"{marker} was changed. Use an earlier checkpoint.")
    if not is_seal(files, (TENSORS, STATE)) or not is_seal(run):
        raise CheckpointError(f"{marker} does not seal its checkpoint. Use an earlier checkpoint.")
    if type(step) is not int or (step_of(path.name) not in (None, step)):
        raise CheckpointError(
            f"{marker} is that of checkpoint {step}: its folder was renamed or its contents "
            "changed. Use an earlier checkpoint."
        )
    return Marker(step, files, run)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint after checking that it is complete and unchanged."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    marker = read_marker(path)
    if changed := find_changed(path, marker.files):
        raise CheckpointError(
            f"{path / changed[0]} is missing, truncated or changed since it was written. "
            "Use an earlier checkpoint."
        )
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        tensors = load_file(path / TENSORS)
    except (ValueError, SafetensorError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}. Use an earlier one.") from error
    return Checkpoint(marker.step, tensors, state, marker.run)


def select(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with ``prefix``, with the prefix removed."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def checkpoint_steps(folder: Path) -> list[int]:
    """Return the steps of all checkpoints, ascending.

    Names decide: a checkpoint gets its name once it is complete, so one that lacks anything was
    damaged, which loading it says.
    """
    if not folder.is_dir():
        return []
    found = [step_of(entry.name) for entry in folder.iterdir()]
    return sorted(step for step in found if step is not None)


def step_of(name: str) -> int | None:
    """Return the step of a checkpoint by its folder's name, ``None`` for other names."""
    return int(name) if re.fullmatch(r"[0-9]{8,}", name) else None


def hash_weights(tensors: dict[str, Tensor]) -> str:
    """Return the SHA-256 of a state dict: names, shapes and bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        # As bytes, because numpy does not know bfloat16.
        plain = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(plain.numpy().tobytes())
    return digest.hexdigest()
