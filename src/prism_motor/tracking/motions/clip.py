"""A motion clip and its file: one .npz with three arrays and a header in JSON.

| array | shape | meaning |
|---|---|---|
| ``position`` | (T, 3) | root in the world, m |
| ``quaternion`` | (T, 4) | orientation of the root, wxyz |
| ``joints`` | (T, 29) | joint angles in policy order, rad |
| ``header`` | text | JSON: ``format``, ``robot``, ``name``, ``fps``, ``source``, ``licence``, ``attribution``, ``changes`` |

Arrays are float32 in steps of 2^-16 (15 micrometres or microradians), which halves the files.
Nothing is ever unpickled.
"""  # noqa: E501 - a table

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prism_motor._checks import InputError, check_name, show
from prism_motor.runs.atomic import atomic_file
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import ROBOT
from prism_motor.tracking.motions.arrays import read_arrays

FORMAT = 1
"""Version of the file format; raised when its meaning changes."""

FEWEST_FRAMES = 8
"""A shorter clip has no window to learn from."""

SLOWEST, FASTEST = 5.0, 1000.0
"""Allowed frame rates, 1/s."""

JOINTS = 29
_STEPS = np.float32(2**16)
_TEXTS = ("name", "source", "licence", "attribution")


@dataclass(frozen=True)
class Clip:
    """A motion of the 29-joint G1, frame by frame."""

    name: str
    """What it is called; also the name of its file."""
    fps: float
    """Frames per second."""
    position: np.ndarray
    """Root in the world, (T, 3), m."""
    quaternion: np.ndarray
    """Orientation of the root, (T, 4), wxyz, of length 1 and without jumps of sign."""
    joints: np.ndarray
    """Joint angles in policy order, (T, 29), rad."""
    source: str = ""
    """Where it comes from."""
    licence: str = ""
    """Under which terms it may be used."""
    attribution: str = ""
    """Whom to credit."""
    changes: tuple[str, ...] = ()
    """What was changed since then."""

    def __len__(self) -> int:
        return len(self.joints)

    @property
    def seconds(self) -> float:
        """Time from the first to the last frame."""
        return (len(self) - 1) / self.fps

    @property
    def qpos(self) -> np.ndarray:
        """States of the simulation, (T, 36), as float64."""
        return np.concatenate([self.position, self.quaternion, self.joints], axis=1, dtype=float)

    def pieces(self, seconds: float) -> Iterator[Clip]:
        """Cut the clip into pieces of a length; the rest is the last one unless it is too short.

        Args:
            seconds: Length of a piece.
        """
        frames = max(FEWEST_FRAMES, round(seconds * self.fps))
        for number, start in enumerate(range(0, len(self), frames)):
            part = slice(start, start + frames)
            if len(self.joints[part]) >= FEWEST_FRAMES:
                yield replace(
                    self,
                    name=f"{self.name}-{number:03d}",
                    position=self.position[part],
                    quaternion=self.quaternion[part],
                    joints=self.joints[part],
                )


def write_clip(clip: Clip, folder: Path) -> Path:
    """Write a clip into a folder and return its file, NAME.npz."""
    check_name("motion", clip.name)
    header = {
        "format": FORMAT,
        "robot": ROBOT,
        "joints": make_robot(ROBOT).joint_names,
        "fps": clip.fps,
        **{key: getattr(clip, key) for key in _TEXTS},
        "changes": list(clip.changes),
    }
    file = folder / f"{clip.name}.npz"
    with atomic_file(file) as out:
        np.savez_compressed(
            out,
            header=np.array(json.dumps(header)),
            **{
                key: (getattr(clip, key) * _STEPS).round().astype(np.float32) / _STEPS
                for key in ("position", "quaternion", "joints")
            },
        )
    return file


def read_clip(file: Path) -> Clip:
    """Read a clip, or raise an error that says what is wrong with its file."""
    return clip_from_arrays(read_arrays(file), file)


def clip_from_arrays(arrays: dict[str, np.ndarray], file: Path) -> Clip:
    """Return the clip in the arrays of a file of our format."""
    header = _read_header(arrays, file)
    parts = {}
    for name, width in (("position", 3), ("quaternion", 4), ("joints", JOINTS)):
        values = arrays.get(name)
        if values is None or values.ndim != 2 or values.shape[1] != width:
            found = "missing" if values is None else f"of shape {values.shape}"
            raise InputError(
                f"{file}: the array {name!r} must have the shape (frames, {width}) and is {found}."
            )
        if values.dtype.kind != "f":
            raise InputError(f"{file}: the array {name!r} must hold finite numbers.")
        if not (finite := np.isfinite(values).all(axis=1)).all():
            frame = int(np.flatnonzero(~finite)[0])
            raise InputError(
                f"{file}: the array {name!r} must hold finite numbers, but frame {frame} does not."
            )
        parts[name] = values.astype(float)
    frames = {len(values) for values in parts.values()}
    if len(frames) != 1 or frames.pop() < FEWEST_FRAMES:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in parts.items())
        raise InputError(
            f"{file}: all arrays must have the same number of frames, at least {FEWEST_FRAMES}; "
            f"got {lengths}."
        )
    length = np.linalg.norm(parts["quaternion"], axis=1, keepdims=True)
    if abs(length - 1).max() > 1e-3:
        raise InputError(f"{file}: quaternions must have length 1. Import the motion again.")
    parts["quaternion"] /= length
    return Clip(fps=float(header["fps"]), changes=tuple(header["changes"]),
                **{key: header[key] for key in _TEXTS}, **parts)  # fmt: skip


def _read_header(arrays: dict[str, np.ndarray], file: Path) -> dict[str, Any]:
    text = arrays.get("header")
    try:
        header = json.loads(str(text[()]) if text is not None and text.dtype.kind == "U" else "")
    except ValueError:
        header = None
    if not isinstance(header, dict) or "format" not in header:
        raise InputError(
            f"{file} is not a motion clip of prism: it has no header. For other layouts: "
            f"prism motions import {file}"
        )
    if header["format"] != FORMAT:
        raise InputError(
            f"{file} has format {show(header['format'])}; this version of prism reads {FORMAT}."
        )
    if header.get("robot") != ROBOT or header.get("joints") != make_robot(ROBOT).joint_names:
        raise InputError(
            f"{file} is a motion of the robot {show(header.get('robot'))}, not of {ROBOT} with "
            "its joints in policy order."
        )
    check_name("motion", header.get("name"))
    fps, changes = header.get("fps"), header.get("changes")
    if isinstance(fps, bool) or not isinstance(fps, int | float) or not SLOWEST <= fps <= FASTEST:
        raise InputError(
            f"{file}: fps must be a number from {SLOWEST:g} to {FASTEST:g}, got {show(fps)}."
        )
    texts = [header.get(key) for key in _TEXTS]
    if not isinstance(changes, list) or not all(isinstance(t, str) for t in [*texts, *changes]):
        raise InputError(f"{file}: {', '.join(_TEXTS)} and all changes must be texts.")
    return header
