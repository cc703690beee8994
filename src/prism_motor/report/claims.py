"""Comparisons of an arm with its reference, corrected for how many a table makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from prism_motor.report.measures import Measure
from prism_motor.statistics import Comparison, compare, holm

LEVEL = 0.05
"""Adjusted p-values below this make a claim."""


@dataclass(frozen=True)
class Claim:
    """A comparison of an arm with its reference, as one of several in a table."""

    arm: str
    """Label of the arm."""
    reference: str
    """Label of what it is compared with."""
    condition: str
    """Under which condition."""
    measure: Measure
    """In what."""
    comparison: Comparison | None
    """``None`` without a common seed."""
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
        return "better" if found.difference * self.measure.better > 0 else "worse"


def make_claim(
    arm: tuple[str, Mapping[int, float]],
    reference: tuple[str, Mapping[int, float]],
    condition: str,
    measure: Measure,
) -> Claim:
    """Compare an arm with a reference, each a label and one number by training seed."""
    found = compare(arm[1], reference[1], higher_is_better=measure.better > 0)
    return Claim(arm[0], reference[0], condition, measure, found)


def with_holm(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return the claims of one table with p-values that allow for their number."""
    adjusted = holm([c.comparison.p_value if c.comparison else None for c in claims])
    return tuple(replace(c, adjusted=p) for c, p in zip(claims, adjusted, strict=True))
