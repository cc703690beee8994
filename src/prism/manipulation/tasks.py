"""Which tasks there are: suites, names, instructions, horizons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """One task of a suite."""

    suite: str
    """libero_spatial, libero_object, libero_goal, libero_10 or metaworld."""
    index: int
    """Number within the suite."""
    name: str
    """Its name in the benchmark."""
    instruction: str
    """What a language-conditioned policy is told."""
    horizon: int
    """Control steps after which an episode ends."""

    @property
    def key(self) -> str:
        """Short name, e.g. ``libero_goal/7``."""
        return f"{self.suite}/{self.index}"
