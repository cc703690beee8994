"""Rollouts: what a trained policy saw, computed and did, and the result.

One row is one control step of one episode. ``observations``, ``commands`` and ``features`` are what
the policy saw at the row's time t and computed from it, ``actions`` and ``targets`` are what it
did, and ``quantities`` are measured at the end of that step, at t + 1, before any reset: a row's
quantities are already the future of its features. Rows are sorted by episode, then by time.
:func:`prism_motor.analysis.recording.record` makes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from prism_motor._checks import InputError
from prism_motor.runs import RunError
from prism_motor.runs.atomic import atomic_file

SCHEMA = 1
"""Version of the files; raised when their meaning changes."""


@dataclass(frozen=True)
class Columns:
    """Values with a name for every column; ``columns["roll"]`` is one of them."""

    names: tuple[str, ...]
    """One name per column."""
    values: np.ndarray
    """(rows, columns)."""

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names):
            raise InputError(
                f"{len(self.names)} names do not fit values of shape {self.values.shape}."
            )

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self.values[:, self.names.index(name)]
        except ValueError:
            raise KeyError(f"There is no {name!r}; there are: {', '.join(self.names)}.") from None


@dataclass(frozen=True)
class Rollout:
    """Recorded episodes of one policy under one condition."""

    about: dict[str, Any]
    """Where it came from: run, arm, checkpoint, hash of the weights, seed, condition, task."""
    environment: np.ndarray
    """Environment of each row, (rows,)."""
    episode: np.ndarray
    """Episode of each row, counted over all environments, (rows,)."""
    step: np.ndarray
    """Control steps since the episode began, (rows,)."""
    done: np.ndarray
    """Whether the episode ended with this row, (rows,); the last one may be cut off instead."""
    fell: np.ndarray
    """Whether it ended with a fall, (rows,)."""
    observations: Columns
    """What the policy saw."""
    commands: Columns
    """The command that it saw: m/s, m/s, rad/s."""
    actions: Columns
    """Mean action of the policy."""
    targets: Columns
    """Joint targets that were held, rad: after clipping, delay and noise."""
    quantities: Columns
    """Physical quantities at the end of the step, see :mod:`prism_motor.analysis.quantities`."""
    features: dict[str, np.ndarray] = field(default_factory=dict)
    """Activations by name, see :mod:`prism_motor.analysis.features`; column i is ``<name>[i]``."""

    def __len__(self) -> int:
        return len(self.episode)

    @property
    def control_dt(self) -> float:
        """Control step, s."""
        return float(self.about["control_dt"])

    def save(self, path: str | Path) -> Path:
        """Write one .npz file, atomically."""
        file = Path(path)
        arrays: dict[str, Any] = {}
        names: dict[str, list[str]] = {}
        for name, value in vars(self).items():
            if isinstance(value, Columns):
                arrays[name], names[name] = value.values, list(value.names)
            elif isinstance(value, np.ndarray):
                arrays[name] = value
        # The raw feature is the observations: it is not written twice.
        arrays |= {f"features.{n}": v for n, v in self.features.items() if n != "raw"}
        text = json.dumps({"schema": SCHEMA, "about": self.about, "names": names})
        with atomic_file(file) as stream:
            np.savez_compressed(stream, about=np.array(text), **arrays)
        return file

    @classmethod
    def load(cls, path: str | Path) -> Rollout:
        """Read what :meth:`save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                data = json.loads(str(stored["about"]))
                arrays = {name: stored[name] for name in stored.files if name != "about"}
            if data["schema"] != SCHEMA:
                raise RunError(
                    f"{path} is a rollout of version {data['schema']}, this prism reads version "
                    f"{SCHEMA}: record it again."
                )
            tables = {n: Columns(tuple(c), arrays.pop(n)) for n, c in data["names"].items()}
            tables["quantities"] = _with_net_power(tables["quantities"])
            features = _take_features(arrays)
            if features:
                features = {"raw": tables["observations"].values, **features}
            fields: dict[str, Any] = {**arrays, **tables}
            return cls(about=data["about"], features=features, **fields)
        except FileNotFoundError:
            raise RunError(f"There is no rollout at {path}.") from None
        except (ValueError, KeyError, TypeError, EOFError, OSError, BadZipFile) as error:
            raise RunError(f"{path} is not a rollout: {error}") from error


def _with_net_power(quantities: Columns) -> Columns:
    """Return the quantities with the net joint power, which earlier versions did not store."""
    if "joint_power_net" in quantities.names or "joint_power_signed" not in quantities.names:
        return quantities
    net = np.abs(quantities["joint_power_signed"])[:, None]
    return Columns((*quantities.names, "joint_power_net"), np.hstack([quantities.values, net]))


def _take_features(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Move the features out of a file's arrays."""
    names = [name for name in arrays if name.startswith("features.")]
    return {name.removeprefix("features."): arrays.pop(name) for name in names}
