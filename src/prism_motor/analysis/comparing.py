"""Several runs in one analysis: which can be loaded, and what they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from prism_motor._errors import InputError
from prism_motor.runs import RunError

P = TypeVar("P")


def load_each(
    paths: Sequence[Path], load: Callable[[Path], P]
) -> tuple[list[tuple[Path, P]], list[str]]:
    """Load what can be loaded; return it and a sentence about each run left out.

    Args:
        paths: Run folders, each once.
        load: Loads one; raises RunError or ValueError if it cannot.
    """
    if not paths:
        raise InputError("Give at least one run folder.")
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError(f"Give every run once, got: {', '.join(map(str, paths))}.")
    found: list[tuple[Path, P]] = []
    left_out: list[str] = []
    for path in paths:
        try:
            found.append((path, load(path)))
        except (RunError, ValueError) as error:
            left_out.append(f"{path} is left out: {error}")
    if not found:
        raise RunError("There is no policy to analyse. " + " ".join(left_out))
    return found, left_out


def mixed_arms(runs: Iterable[tuple[str, object, int]]) -> set[str]:
    """Return the arms whose runs differ in more than the training seed, or have one seed twice.

    Args:
        runs: Arm, settings that make an arm what it is, and training seed of every run.
    """
    kinds: dict[str, set[str]] = {}
    seeds: dict[str, list[int]] = {}
    for arm, settings, seed in runs:
        kinds.setdefault(arm, set()).add(repr(settings))
        seeds.setdefault(arm, []).append(seed)
    return {arm for arm in kinds if len(kinds[arm]) > 1 or len(set(seeds[arm])) < len(seeds[arm])}
