"""What probes are fitted on: windows of some domain, with their targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Target:
    """Something to predict from features at time t."""

    name: str
    """Short name."""
    label: str
    """What figures call it."""
    formula: str
    """How it is computed over the window t+1..t+H."""
    quantity: str
    """The quantity that it is made of, by name."""
    logarithm: bool = False
    """Whether it is log(1 + sum) instead of the mean."""

    def values(self, windows: np.ndarray) -> np.ndarray:
        """Return the target of every window, (n, H) -> (n,)."""
        windows = windows.astype(np.float64)
        return np.log1p(windows.sum(-1)) if self.logarithm else windows.mean(-1)


@dataclass(frozen=True)
class Domain:
    """What is probed for, and the words for it."""

    targets: tuple[Target, ...]
    """One per column of the targets."""
    unit: str
    """What is held out whole, e.g. ``robot``."""
    windows: str
    """Which windows count, e.g. ``upright windows``."""
    advice: str
    """What to do when too few units have windows."""

    @property
    def units(self) -> str:
        """The plural of the unit."""
        return f"{self.unit}s"


@dataclass(frozen=True)
class Windows:
    """Times t with a full history and a future of H steps that count in the domain."""

    observations: np.ndarray
    """What the policy saw at t, (n, observations)."""
    targets: np.ndarray
    """(n, targets), from the states t+1..t+H alone."""
    unit: np.ndarray
    """Which unit of the domain, never on both sides of a split, (n,)."""
    episodes: int
    """How many episodes they come from."""

    def __len__(self) -> int:
        return len(self.unit)


def join_windows(parts: list[Windows]) -> Windows:
    """Put windows of several recordings together; their units stay different ones."""
    units, offset = [], 0
    for part in parts:
        units.append(part.unit + offset)
        offset += int(part.unit.max(initial=-1)) + 1
    return Windows(
        observations=np.concatenate([part.observations for part in parts]),
        targets=np.concatenate([part.targets for part in parts]),
        unit=np.concatenate(units),
        episodes=sum(part.episodes for part in parts),
    )
