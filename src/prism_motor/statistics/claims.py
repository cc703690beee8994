"""What is measured, and when an arm may be called better than its reference.

There is one rule for all tables and sentences: the 95 % interval of the paired difference excludes
zero, and Holm's p-value among all claims of the table is below 0.05.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prism_motor.statistics.paired import Comparison, compare, holm

LEVEL = 0.05
"""Adjusted p-values below this support a claim."""


@dataclass(frozen=True)
class Measure:
    """One quantity of an episode, and one column of the tables."""

    field: str
    """Field of an episode's record."""
    title: str
    """Name in tables and sentences."""
    unit: str = ""
    """Unit after scaling."""
    digits: int = 3
    """Decimals to show."""
    higher_is_better: bool | None = None
    """Which direction is better; ``None`` if neither, then no claim is made."""
    factor: float = 1.0
    """Factor from the recorded value to the unit."""
    limits: tuple[float, float] | None = None
    """What values cannot exceed; intervals are cut there."""

    @property
    def heading(self) -> str:
        """Title with unit and direction."""
        arrow = {True: "\u00a0↑", False: "\u00a0↓", None: ""}[self.higher_is_better]
        return f"{self.title}{', ' + self.unit if self.unit else ''}{arrow}"

    def value(self, episode: Any) -> float | None:
        """Return the value of an episode, a mapping or a dataclass, in the unit.

        ``None`` if the episode has no value, e.g. no swing of a foot to measure.
        """
        found = (
            episode[self.field] if isinstance(episode, Mapping) else getattr(episode, self.field)
        )
        return None if found is None else self.factor * float(found)

    def write(self, value: float, signed: bool = False) -> str:
        """Format a value with its decimals and a proper minus sign."""
        return f"{value:{'+' if signed else ''}.{self.digits}f}".replace("-", "−")


@dataclass(frozen=True)
class Claim:
    """A comparison of an arm with its reference, as one of several in a table."""

    arm: str
    """Label of the arm."""
    reference: str
    """Label of the reference."""
    condition: str
    """Name of the condition."""
    measure: Measure
    """The measure that is compared."""
    comparison: Comparison | None
    """The comparison; ``None`` without a common seed."""
    adjusted: float | None = None
    """Holm's p-value among all claims of the table."""

    @property
    def outcome(self) -> str:
        """``better``, ``worse``, ``open`` (these seeds cannot tell), or ``untested``."""
        found = self.comparison
        if found is None or found.interval is None or self.adjusted is None:
            return "untested"
        if found.interval.contains(0.0) or self.adjusted >= LEVEL:
            return "open"
        return "better" if (found.difference > 0) == self.measure.higher_is_better else "worse"


def make_claim(
    arm: tuple[str, Mapping[int, float]],
    reference: tuple[str, Mapping[int, float]],
    condition: str,
    measure: Measure,
) -> Claim:
    """Compare an arm with a reference, each a label and one number per training seed."""
    found = compare(arm[1], reference[1], higher_is_better=bool(measure.higher_is_better))
    return Claim(arm[0], reference[0], condition, measure, found)


def with_holm(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return the claims of one table with p-values adjusted for their number."""
    adjusted = holm([c.comparison.p_value if c.comparison else None for c in claims])
    return tuple(replace(c, adjusted=p) for c, p in zip(claims, adjusted, strict=True))


def write_p(value: float) -> str:
    """Format a p-value with two significant digits."""
    return "< 0.001" if value < 0.001 else f"{value:.2g}"
