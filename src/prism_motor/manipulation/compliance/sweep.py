"""Choosing the settings of a compliance baseline: what is tried, and which one wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from prism_motor._errors import InputError
from prism_motor.manipulation.compliance.config import ComplianceConfig


@dataclass(frozen=True)
class Grid:
    """Values that are tried, each with each."""

    gain: tuple[float, ...] = (0.005, 0.015, 0.045)
    """Change of the action per newton."""
    smoothing: tuple[float, ...] = (0.8, 0.9)
    """Share of the past in the moving average."""
    clip: tuple[float, ...] = (0.05,)
    """Largest change of every component of the action."""

    def candidates(self, base: ComplianceConfig) -> list[ComplianceConfig]:
        """Return all settings; delay and noise stay those of the base, as they are no choice."""
        return [
            replace(base, gain=gain, smoothing=smoothing, clip=clip)
            for gain, smoothing, clip in product(self.gain, self.smoothing, self.clip)
        ]


@dataclass(frozen=True)
class Trial:
    """What one setting did on the validation split."""

    config: ComplianceConfig
    """The setting."""
    episodes: int
    """Episodes, the same for all settings."""
    successes: int
    """Episodes that solved the task."""
    impulse: float | None
    """Mean contact impulse of the successful episodes with contact, N s; none without any."""


def choose(trials: Sequence[Trial]) -> Trial:
    """Return the setting with most successes, of equal ones that with the least impulse.

    Of settings that are equal in both the first wins; an impulse that is not known loses.
    """
    if not trials:
        raise InputError("A sweep needs at least one setting.")
    return min(trials, key=_badness)


def _badness(trial: Trial) -> tuple[float, float]:
    impulse = float("inf") if trial.impulse is None else trial.impulse
    return -trial.successes / trial.episodes, impulse
