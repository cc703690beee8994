"""The clips of an export for tracking: a latent per frame, and what is to be tracked."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .rules import CONTRACT, RunnerError, parse_json, shown

OFF_SPHERE = 0.01
"""How much longer or shorter than the contract's length a latent may be, as a share."""


@dataclass(frozen=True)
class Clip:
    """A motion of T frames, one control step apart."""

    name: str
    """Its name."""
    latents: np.ndarray
    """What prompts the policy in each frame to reach the next (T, size)."""
    qpos: np.ndarray
    """What is to be tracked (T, 7 + joints): base position, quaternion wxyz, joints."""
    start: tuple[np.ndarray, np.ndarray]
    """Positions and velocities of the first frame at full precision."""

    def latent(self, step: int) -> np.ndarray:
        """Return the latent of a control step; the last one stays."""
        return self.latents[min(step, len(self.latents) - 1)]


def read_clips(contract: dict[str, Any], path: Path) -> dict[str, Clip]:
    """Read the clips of an export; raise unless they are those of its contract and policy."""
    joints, size = len(contract["joints"]), contract["latent"]["size"]
    entries = contract["clips"]
    total = sum(entry["frames"] for entry in entries)
    shapes = {
        "latents": (total, size),
        "qpos": (total, 7 + joints),
        "start_qpos": (len(entries), 7 + joints),
        "start_qvel": (len(entries), 6 + joints),
    }
    arrays, made_for = _read_arrays(path, list(shapes))
    if made_for != contract["provenance"]["policy_sha256"]:
        raise RunnerError(
            f"{path} has the latents of policy {shown(made_for)[:12]}, not of "
            f"{contract['provenance']['policy_sha256'][:12]}. Latents of one policy mean nothing "
            "to another; export the run again."
        )
    for name, shape in shapes.items():
        values = arrays[name]
        if values.dtype.kind != "f" or values.shape != shape or not np.isfinite(values).all():
            raise RunnerError(
                f"{path}: {name} must be {shape} finite numbers, as {CONTRACT} says; it is "
                f"{values.shape} of {values.dtype}. Export the run again."
            )
    length = contract["latent"]["length"]
    off = np.abs(np.linalg.norm(arrays["latents"], axis=1) / length - 1) > OFF_SPHERE
    if off.any():
        raise RunnerError(f"{path}: latent {int(np.argmax(off))} is not {length:g} long.")
    clips, first = {}, 0
    for i, entry in enumerate(entries):
        frames = slice(first, first + entry["frames"])
        start = arrays["start_qpos"][i].astype(float), arrays["start_qvel"][i].astype(float)
        clip = Clip(entry["name"], arrays["latents"][frames], arrays["qpos"][frames], start)
        clips[clip.name] = clip
        first = frames.stop
    return clips


def _read_arrays(path: Path, names: list[str]) -> tuple[dict[str, np.ndarray], Any]:
    """Return arrays by name, and the hash of the policy that they were made for."""
    try:
        with np.load(path, allow_pickle=False) as file:
            header = parse_json(str(file["header"]))
            return {name: file[name] for name in names}, header["policy_sha256"]
    except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile) as error:
        raise RunnerError(f"{path} has no clips: {error!a}. Export the run again.") from error
