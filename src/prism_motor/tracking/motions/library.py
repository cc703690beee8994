"""Clips by name: those that come with the package, and those in files and folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prism_motor._checks import InputError, check_choice
from prism_motor.tracking.motions.clip import Clip, read_clip

SHIPPED = Path(__file__).parent / "shipped"
"""Folder of the clips that come with the package."""


def shipped_clips() -> list[str]:
    """Return the names of the clips that come with the package."""
    return sorted(file.stem for file in SHIPPED.glob("*.npz"))


def find_clip(name: str | Path) -> Clip:
    """Return a clip by its file, or by its name if it comes with the package."""
    file = Path(name)
    if file.is_file() or file.suffix == ".npz":
        return read_clip(file)
    return read_clip(SHIPPED / f"{check_choice('motion', str(name), shipped_clips())}.npz")


def find_clips(names: Sequence[str | Path] = ()) -> list[Clip]:
    """Return clips in the order given.

    Args:
        names: Files, names of shipped clips, and folders, of which all clips are taken; all
            shipped clips by default.

    Raises:
        InputError: A clip is damaged, a folder has none, or two have the same name.
    """
    clips: list[Clip] = []
    for name in names or shipped_clips():
        if Path(name).is_dir():
            files = sorted(Path(name).glob("*.npz"))
            if not files:
                raise InputError(
                    f"{name} has no motion clips (.npz). To make some of files in other layouts: "
                    f"prism motions import {name} --out FOLDER"
                )
            clips += [read_clip(file) for file in files]
        else:
            clips.append(find_clip(name))
    seen: set[str] = set()
    for clip in clips:
        if clip.name in seen:
            raise InputError(f"Two motions are called {clip.name!r}; rename one of them.")
        seen.add(clip.name)
    return clips
