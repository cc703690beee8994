"""The conditions under which tracking is evaluated, as data."""

from __future__ import annotations

from dataclasses import replace

from prism_motor._checks import check_choice
from prism_motor.tracking.task import NOMINAL, TrackingRandomisation

CONDITIONS: dict[str, TrackingRandomisation | None] = {
    "nominal": NOMINAL,
    "low-friction": replace(NOMINAL, friction=(0.2, 0.2)),
    "payload": replace(NOMINAL, mass_scale=1.15),
    "training": None,
}
"""What is random by condition; friction and payload are those of the paper, and ``training`` keeps
everything as it was in training."""


def find_condition(name: str, trained: TrackingRandomisation) -> TrackingRandomisation:
    """Return what is random under a condition."""
    return CONDITIONS[check_choice("condition", name, CONDITIONS)] or trained
