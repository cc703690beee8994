"""Trained policies that come with the package: small run folders, opened by name.

A shipped policy is a run folder with the actor's weights alone. Wherever a run is asked for, its
name does: ``load_policy("g1-prism")``, ``prism eval g1-prism``. The package stays as it was
installed, so whoever writes into a run folder takes a :func:`working_copy` first.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from prism_motor.runs.layout import RunError

SHIPPED = Path(__file__).resolve().parents[1] / "shipped"
"""Where they are: one folder a policy."""


_FORMER = {"g1-gated": "g1-prism", "g1-mlp-larger": "g1-mlp-matched"}
"""Former names of shipped policies."""


def shipped_names() -> list[str]:
    """Return the names of all shipped policies."""
    return sorted(file.parent.name for file in SHIPPED.glob("*/config.json"))


def resolve(run: str | Path) -> Path:
    """Return the run folder that is meant; a folder of that name wins over a shipped policy.

    Args:
        run: A run folder or the name of a shipped policy.
    """
    path = Path(run)
    names = shipped_names()
    if path.exists():
        return path
    name = _FORMER.get(str(run), str(run))
    if name in names:
        return SHIPPED / name
    known = f"; these come with prism: {', '.join(names)}" if names else ""
    raise RunError(f"There is no run at {run}{known}.")


def is_shipped(run: str | Path) -> bool:
    """Say whether a run is one that comes with the package."""
    return resolve(run).resolve().parent == SHIPPED


def working_copy(run: str | Path, parent: str | Path = "outputs") -> Path:
    """Return a run folder that may be written into.

    Args:
        run: A run folder, which is returned as it is, or a shipped policy, which is copied.
        parent: Where the copy goes, under the policy's name; one that is there is used again.
    """
    path = resolve(run)
    if not is_shipped(path):
        return path
    copy = Path(parent) / path.name
    if not copy.exists():
        temporary = copy.with_name(f".{copy.name}.{os.getpid()}.tmp")
        try:
            shutil.copytree(path, temporary, copy_function=shutil.copyfile)
            temporary.replace(copy)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    elif _fingerprint(copy) != _fingerprint(path):
        raise RunError(
            f"{copy} is not a copy of the shipped policy {path.name}, perhaps one of another "
            "version. Move it away, or give another folder by its path."
        )
    return copy


def writable(run: str | Path) -> Path:
    """Return the run folder to write into: that of a shipped policy is copied, which is printed."""
    folder = working_copy(run)
    if is_shipped(run):
        print(f"{run} comes with prism; this goes to its copy in {folder}.")
    return folder


def _fingerprint(run: Path) -> list[str]:
    """Read the hashes of all checkpoints, which stand in their markers."""
    return [file.read_text() for file in sorted(run.glob("checkpoints/*/complete.json"))]
