"""Make a shipped policy of a trained run, for maintainers: ``python -m prism.learn.ship RUN NAME``.

What stays is what evaluating, filming, explaining and exporting need: the actor's weights, the
config, the evaluations of exactly these weights and enough metrics for a learning curve. What names
a machine goes: folders in command lines. See :mod:`prism.runs.shipped`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from prism.learn.evaluations import hash_weights
from prism.learn.policy import load_policy
from prism.runs import Run, RunError
from prism.runs.atomic import write_json, write_text
from prism.runs.shipped import SHIPPED

LARGEST = 2_000_000
"""Bytes that a shipped policy may have."""

_ROWS = 200
"""Rows of metrics that are kept."""


def ship(run: str | Path, name: str, parent: Path = SHIPPED) -> Path:
    """Write a shipped policy and check that it is the same policy; one of that name is replaced.

    Args:
        run: The trained run; its newest checkpoint is taken.
        name: What it will be called.
        parent: Where shipped policies live.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"Use lower-case letters, digits and single hyphens, got name {name!r}.")
    source, policy = Run.open(run), load_policy(run)
    weights = hash_weights(policy.actor.state_dict())
    parent.mkdir(exist_ok=True)
    temporary = parent / f".{name}.{os.getpid()}.tmp"
    try:
        temporary.mkdir()
        _write(source, weights, temporary)
        if hash_weights(load_policy(temporary).actor.state_dict()) != weights:
            raise RunError(f"The weights of {source.path} changed on their way. Nothing was kept.")
        size = folder_size(temporary)
        if size > LARGEST:
            raise RunError(
                f"{name} would have {size / 1e6:.2f} MB, at most {LARGEST / 1e6:.1f} are allowed. "
                "Take a smaller network, or move some of the evaluations elsewhere."
            )
        target = parent / name
        if target.exists():
            shutil.rmtree(target)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _write(source: Run, weights: str, folder: Path) -> None:
    """Fill a folder with the parts of a run that are shipped."""
    write_json(folder / "config.json", source.config)
    rows = source.metrics()
    kept = thin(rows, _ROWS)
    write_text(folder / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in kept))
    provenance = json.loads((source.path / "provenance.json").read_text())
    note = f"the actor alone, {len(kept)} of {len(rows)} rows of metrics"
    write_json(folder / "provenance.json", {**_portable(provenance), "shipped": note})
    shipped = Run(folder, source.config)
    checkpoint = source.load()
    actor = {k: v for k, v in checkpoint.tensors.items() if k.startswith("actor.")}
    kept_state = ("iteration", "seconds", "world_size")
    state = {key: checkpoint.state[key] for key in kept_state}
    shipped.save(checkpoint.step, actor, state)
    (folder / "evaluations").mkdir()
    for file in sorted((source.path / "evaluations").glob("*.json")):
        data = json.loads(file.read_text())
        if data.get("policy_sha256") == weights:
            data["provenance"] = _portable(data["provenance"])
            text = json.dumps(data, separators=(",", ":"), allow_nan=False)
            write_text(folder / "evaluations" / file.name, text + "\n")


def thin(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return about ``count`` rows, evenly spaced, with the first and the last."""
    if len(rows) <= count:
        return rows
    last = len(rows) - 1
    return [rows[round(i * last / (count - 1))] for i in range(count)]


def _portable(provenance: dict[str, Any]) -> dict[str, Any]:
    """Leave of every path in the command line its last part."""
    command = [re.sub(r"[^=]*[/\\]", "", word.rstrip("/\\")) for word in provenance["command"]]
    return {**provenance, "command": command}


def main() -> None:
    """Run as a command."""
    import tyro

    try:
        folder = tyro.cli(
            ship, prog="python -m prism.learn.ship", config=(tyro.conf.PositionalRequiredArgs,)
        )
    except (ValueError, OSError, RunError) as error:
        sys.exit(f"ship: error: {error}")
    found = sorted(file.stem for file in (folder / "evaluations").iterdir())
    print(
        f"{folder}: {folder_size(folder) / 1e6:.2f} MB, evaluations: {', '.join(found) or 'none'}"
    )


if __name__ == "__main__":
    main()
