"""What identifies a number of a section, and numbers by it."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """Identifies a number of a section."""

    label: str
    """Label of the row: an arm, and how its policies were executed."""
    condition: str
    """Name of the condition."""
    field: str
    """Field of the measure."""
    solved: bool = False
    """Whether only successful episodes count."""


Means = dict[Key, dict[int, float]]
"""Means over episodes by training seed, without missing seeds."""

Rates = dict[tuple[str, str], dict[int, tuple[int, int]]]
"""Successes and episodes by training seed, by label and condition."""

Fixed = dict[Key, float]
"""Means over episodes of what needs no policy, and so does not depend on training seeds."""
