"""Trained policies that come with the package: small run folders, opened by name.

A shipped policy is a run folder with only the actor's weights. Its name works wherever a run is
expected: ``load_policy("g1-prism")``, ``prism eval g1-prism``. Installed packages are not modified,
so code that writes into a run folder makes a :func:`working_copy` first.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from prism_motor._checks import suggest
from prism_motor._console import note
from prism_motor.runs.atomic import atomic_folder
from prism_motor.runs.layout import LOCK, REPLAY, TENSORBOARD, VIDEOS, RunError

SHIPPED = Path(__file__).resolve().parents[1] / "shipped"
"""Folder of the shipped policies, one subfolder per policy."""


_FORMER = {"g1-gated": "g1-prism", "g1-mlp-larger": "g1-mlp-matched"}
"""Former names of shipped policies."""

_told: set[str] = set()
"""Former names that the user was told about."""

_NOT_COPIED = (LOCK, REPLAY, TENSORBOARD, VIDEOS)
"""Parts of a run that its copy needs for nothing."""


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
    name = str(run)
    if name in _FORMER:
        name = _FORMER[name]
        if str(run) not in _told:
            _told.add(str(run))
            note(f"{run} is now called {name}.")
    if name in names:
        return SHIPPED / name
    known = f"; policies shipped with prism: {', '.join(names)}" if names else ""
    raise RunError(f"No run found at {run}{known}.{suggest(str(run), names)}")


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
    return _copy(path, Path(parent) / path.name)


def _copy(path: Path, copy: Path) -> Path:
    """Copy a run; an existing copy is reused."""
    if not copy.exists():
        with atomic_folder(copy) as temporary:
            shutil.copytree(
                path,
                temporary,
                copy_function=shutil.copyfile,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(*_NOT_COPIED),
            )
    elif not _fingerprint(copy) or _fingerprint(copy) != _fingerprint(path):
        whose = "the shipped policy" if is_shipped(path) else "the run"
        raise RunError(
            f"{copy} is not a copy of {whose} {path.name}, or comes from another version. Move it "
            "away, or give another folder by its path."
        )
    return copy


def writable(run: str | Path, out: Path | None = None) -> Path:
    """Return the folder to write to; copies are announced.

    Args:
        run: A run folder, or a shipped policy, of which a copy is made.
        out: Where to make a copy of either; default: only shipped policies are copied.
    """
    folder = working_copy(run) if out is None else _copy(resolve(run), out)
    if out is not None:
        print(f"Writing to a copy of {run} in {folder}.")
    elif is_shipped(run):
        print(f"{folder.name} ships with prism; writing to its copy in {folder}.")
    return folder


def _fingerprint(run: Path) -> list[str]:
    """Read the hashes of all checkpoints from their markers."""
    return [file.read_text() for file in sorted(run.glob("checkpoints/*/complete.json"))]
