"""Checkpoints: a folder of safetensors and JSON with a marker that is written last.

.. code-block:: text

    checkpoints/00000120/
        tensors.safetensors    every tensor by name
        state.json             counters and everything else that is not a tensor
        complete.json          schema version, sizes and hashes; without it, no valid checkpoint
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from prism_motor._extras import missing_extra
from prism_motor.runs.atomic import atomic_folder, write_json
from prism_motor.runs.layout import CheckpointError

SCHEMA = 1
"""Version of the layout; increased when it changes."""

_TENSORS, _STATE, _MARKER = "tensors.safetensors", "state.json", "complete.json"


@dataclass(frozen=True)
class Checkpoint:
    """A saved training state."""

    step: int
    """Update after which it was saved."""
    tensors: dict[str, Tensor]
    """Every tensor by name."""
    state: dict[str, Any]
    """Everything else."""


def save_checkpoint(
    folder: Path, step: int, tensors: dict[str, Tensor], state: dict[str, Any]
) -> Path:
    """Write a checkpoint under a temporary name and rename it once it is complete."""
    try:
        from safetensors.torch import save_file
    except ImportError as error:
        raise missing_extra("Saving checkpoints", "locomotion", error) from error
    final = folder / f"{step:08d}"
    copies = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
    try:
        with atomic_folder(final) as temporary:
            save_file(copies, temporary / _TENSORS)
            write_json(temporary / _STATE, state)
            files = {name: _fingerprint(temporary / name) for name in (_TENSORS, _STATE)}
            write_json(temporary / _MARKER, {"schema": SCHEMA, "step": step, "files": files})
    except OSError as error:
        raise CheckpointError(
            f"Could not save checkpoint {final.name} in {folder}: {error.strerror or error}. "
            "Earlier checkpoints are intact; free disk space or fix the permissions, then resume."
        ) from error
    return final


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint after checking that it is complete and unchanged."""
    from safetensors.torch import load_file

    marker = path / _MARKER
    if not marker.is_file():
        raise CheckpointError(
            f"{path} is not a complete checkpoint (no {_MARKER}): writing it was interrupted "
            "or it is another kind of folder. Use an earlier one."
        )
    try:
        contents = json.loads(marker.read_text())
        schema, files = contents["schema"], contents["files"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{marker} is not readable. Use an earlier checkpoint.") from error
    if schema != SCHEMA:
        raise CheckpointError(
            f"{path} has layout version {schema}; this version of prism reads {SCHEMA}. "
            "Load it with the version of prism that wrote it."
        )
    for name, expected in files.items():
        file = path / name
        if not file.is_file() or _fingerprint(file) != expected:
            raise CheckpointError(
                f"{file} is missing, truncated or changed since it was written. "
                "Use an earlier checkpoint."
            )
    state = json.loads((path / _STATE).read_text())
    return Checkpoint(int(contents["step"]), load_file(path / _TENSORS), state)


def select(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with ``prefix``, with the prefix removed."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def checkpoint_steps(folder: Path) -> list[int]:
    """Return the steps of all complete checkpoints, ascending."""
    if not folder.is_dir():
        return []
    names = [entry.name for entry in folder.iterdir() if (entry / _MARKER).is_file()]
    return sorted(int(name) for name in names if name.isdigit())


def _fingerprint(path: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def hash_weights(tensors: dict[str, Tensor]) -> str:
    """Return the SHA-256 of a state dict: names, shapes and bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
