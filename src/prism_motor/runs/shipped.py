"""Trained policies that come with the package: small run folders, opened by name.

A shipped policy is a run folder with only the actor's weights. Its name works wherever a run is
expected: ``load_policy("g1-prism")``, ``prism eval g1-prism``. Installed packages are not modified,
so code that writes into a run folder makes a :func:`working_copy` first.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from prism_motor.runs.atomic import atomic_folder
from prism_motor.runs.layout import RunError

SHIPPED = Path(__file__).resolve().parents[1] / "shipped"
"""Folder of the shipped policies, one subfolder per policy."""


_FORMER = {"g1-gated": "g1-prism", "g1-mlp-larger": "g1-mlp-matched"}
"""Former names of shipped policies."""


def shipped_names() -> list[str]:
    """Return the names of all shipped policies."""
    return sorted(file.parent.name for file in SHIPPED.glob("*/config.json"))


def resolve(run: str | Path) -> Path:
    """Return the folder of a run; an existing folder wins over a shipped policy of that name.

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
    known = f"; policies shipped with prism: {', '.join(names)}" if names else ""
    raise RunError(f"No run found at {run}{known}.")


def is_shipped(run: str | Path) -> bool:
    """Return whether a run ships with the package."""
    return resolve(run).resolve().parent == SHIPPED


def working_copy(run: str | Path, parent: str | Path = "outputs") -> Path:
    """Return a run folder that can be written to.

    Args:
        run: A run folder, which is returned as it is, or a shipped policy, which is copied.
        parent: Folder for the copy, which is named after the policy; an existing one is reused.
    """
    path = resolve(run)
    if not is_shipped(path):
        return path
    copy = Path(parent) / path.name
    if not copy.exists():
        with atomic_folder(copy) as temporary:
            shutil.copytree(path, temporary, copy_function=shutil.copyfile, dirs_exist_ok=True)
    elif _fingerprint(copy) != _fingerprint(path):
        raise RunError(
            f"{copy} is not a copy of the shipped policy {path.name}, or comes from another "
            "version. Move it away, or give another folder by its path."
        )
    return copy


def writable(run: str | Path) -> Path:
    """Return the folder to write to; a shipped policy is copied, and the copy is announced."""
    folder = working_copy(run)
    if is_shipped(run):
        print(f"{run} ships with prism; writing to its copy in {folder}.")
    return folder


def _fingerprint(run: Path) -> list[str]:
    """Read the hashes of all checkpoints from their markers."""
    return [file.read_text() for file in sorted(run.glob("checkpoints/*/complete.json"))]
