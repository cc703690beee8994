"""Exact resume of a replay buffer without writing it anew at every checkpoint.

Rows are written once, in files of ``segment_rows`` rows that never change and are named by their
rows and contents. A checkpoint holds the list of the files it needs, with hashes, and the few rows
that do not fill a file yet. The newest checkpoints alone keep their rows: a run that keeps many for
their policies does not keep as many buffers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from prism_motor._extras import missing_extra
from prism_motor.runs.atomic import atomic_file
from prism_motor.runs.checkpoints import STATE, select
from prism_motor.runs.layout import CHECKPOINTS, CheckpointError

RESUMABLE = 2
"""Newest checkpoints of a run that can be continued from: one, and one should that be damaged."""


class ReplayRows(Protocol):
    """A ring of rows, numbered from the first one ever added."""

    @property
    def added(self) -> int:
        """Rows that were ever added; where it is set, the ring goes on from there."""
        ...

    @added.setter
    def added(self, added: int) -> None: ...

    @property
    def capacity(self) -> int:
        """Rows that it holds."""
        ...

    @property
    def envs(self) -> int:
        """Environments per row."""
        ...

    @property
    def oldest(self) -> int:
        """Number of the oldest row."""
        ...

    def rows(self, first: int, last: int) -> dict[str, Tensor]:
        """Return copies of the fields of the rows ``first`` to ``last``, exclusive, on the CPU."""
        ...

    def put(self, first: int, values: Mapping[str, Tensor]) -> None:
        """Write rows back to where :meth:`rows` took them from."""
        ...


class ReplayFiles:
    """The files of one replay buffer.

    Args:
        folder: Where they are.
        segment_rows: Rows per file.
    """

    def __init__(self, folder: Path, segment_rows: int) -> None:
        self.folder, self._rows = folder, segment_rows
        self._segments: list[dict[str, Any]] = []

    def save(self, replay: ReplayRows) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Write the rows that fill a file; return (tensors, plain data) for the checkpoint."""
        kept = [one for one in self._segments if one["first"] + one["rows"] > replay.oldest]
        written = kept[-1]["first"] + kept[-1]["rows"] if kept else 0
        start = max(written, replay.oldest)
        while replay.added - start >= self._rows:
            kept.append(self._write(replay, start))
            start += self._rows
        self._segments = kept
        tensors = {f"tail.{k}": v for k, v in replay.rows(start, replay.added).items()}
        plain = {
            "capacity": replay.capacity,
            "envs": replay.envs,
            "added": replay.added,
            "tail": start,
            "segments": [dict(one) for one in kept],
        }
        return tensors, plain

    def load(
        self, replay: ReplayRows, tensors: Mapping[str, Tensor], plain: Mapping[str, Any]
    ) -> None:
        """Fill a buffer with what :meth:`save` described."""
        for name in ("capacity", "envs"):
            if plain[name] != getattr(replay, name):
                raise CheckpointError(
                    f"The checkpoint's replay buffer has {name} {plain[name]}, this run's has "
                    f"{getattr(replay, name)}. Resume with the settings of the run."
                )
        replay.added = plain["added"]
        for segment in plain["segments"]:
            rows = self._read(segment)
            skip = max(0, replay.oldest - segment["first"])
            replay.put(segment["first"] + skip, {k: v[skip:] for k, v in rows.items()})
        replay.put(plain["tail"], select(dict(tensors), "tail."))
        self._segments = [dict(one) for one in plain["segments"]]

    def prune(self, run: Path) -> None:
        """Delete the files that neither the newest checkpoints of a run need nor the last save."""
        needed = {one["file"] for one in self._segments}
        # Dumps and what was set aside as damaged may be used again, however old they are.
        states = sorted(run.glob(f"*/*/{STATE}"))
        older = [file for file in states if file.parent.parent.name == CHECKPOINTS][:-RESUMABLE]
        for file in set(states) - set(older):
            try:
                saved = json.loads(file.read_text(encoding="utf-8"))
                needed |= {one["file"] for one in saved["replay"]["segments"]}
            except (OSError, ValueError, KeyError, TypeError):
                return  # nobody knows what a damaged one needs
        for file in self.folder.glob("rows-*.safetensors"):
            if file.name not in needed:
                file.unlink()

    def _write(self, replay: ReplayRows, first: int) -> dict[str, Any]:
        try:
            from safetensors.torch import save
        except ImportError as error:
            raise missing_extra("Saving replay buffers", "locomotion", error) from error
        data = save(replay.rows(first, first + self._rows))
        digest = hashlib.sha256(data).hexdigest()
        name = f"rows-{first:09d}-{first + self._rows:09d}-{digest[:12]}.safetensors"
        try:
            with atomic_file(self.folder / name) as file:
                file.write(data)
        except OSError as error:
            raise CheckpointError(
                f"Could not write {name} of the replay buffer to {self.folder}: "
                f"{error.strerror or error}. Earlier checkpoints are intact; free disk space or "
                "fix the permissions, then resume."
            ) from error
        return {"first": first, "rows": self._rows, "file": name, "sha256": digest}

    def _read(self, segment: Mapping[str, Any]) -> dict[str, Tensor]:
        from safetensors.torch import load

        path = self.folder / segment["file"]
        data = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(data).hexdigest() != segment["sha256"]:
            raise CheckpointError(
                f"{path}, a part of the replay buffer, is missing or changed since it was written. "
                f"The newest {RESUMABLE} checkpoints of a run keep their buffer, no older ones: "
                "continue from one of them, in a copy of the whole run folder."
            )
        return load(data)
