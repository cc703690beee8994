"""The arms of the laboratory: where products are, how their gates start, how they are scaled."""

from __future__ import annotations

from collections.abc import Iterable

from prism_motor.studies import networks
from prism_motor.studies.networks import StudyArm

REFERENCE = StudyArm("mlp-matched", "MLP of equal size")
"""What every arm is compared with."""

ARMS: tuple[StudyArm, ...] = (
    REFERENCE,
    StudyArm("mlp", "MLP, the backbone alone", backbone_only=True),
    StudyArm("prism-degree1", "front, degree 1 (linear)", "gated", 1),
    StudyArm("prism-gate0", "front, gates 0", "gated", gate_init=0.0),
    StudyArm("prism", "front, gates 0.01 (paper)", "gated"),
    StudyArm("prism-gate0.3", "front, gates 0.3", "gated", gate_init=0.3),
    StudyArm("prism-gate1", "front, gates 1", "gated", gate_init=1.0),
    StudyArm("prism-gate-rate", "front, gates 0.01, ten times their rate", "gated", gate_rate=10.0),
    StudyArm("prism-degree3", "front, degree 3, gates 0.01", "gated", 3),
    StudyArm("prism-degree3-gate1", "front, degree 3, gates 1", "gated", 3, gate_init=1.0),
    StudyArm(
        "prism-adaptive",
        "front, degree up to 3, gates 1 that cost",
        "gated",
        3,
        gate_init=1.0,
        gate_cost=0.1,
    ),
    StudyArm("prism-rms", "front, gates 1, RMS of factors", "scaled", gate_init=1.0),
    StudyArm("prism-unit", "front, gates 1, unit variance", "unit", gate_init=1.0),
    StudyArm("product", "front, product without gates", "product"),
    StudyArm("prism-after", "after, gates 0.01", "gated", position="after"),
    StudyArm("prism-after-gate1", "after, gates 1", "gated", position="after", gate_init=1.0),
    StudyArm(
        "prism-both-gate1", "front and after, gates 1", "gated", position="both", gate_init=1.0
    ),
    StudyArm("prism-temporal", "over time, gates 1", "gated", gate_init=1.0, window=2),
    StudyArm(
        "prism-temporal-rms",
        "over time, gates 1, RMS",
        "scaled",
        gate_init=1.0,
        window=2,
    ),
    StudyArm(
        "prism-temporal-wide",
        "over time, 4 frames, gates 1, RMS",
        "scaled",
        gate_init=1.0,
        window=4,
    ),
    StudyArm("temporal-degree1", "over time, no products", degree=1, window=2),
    StudyArm("temporal-wide-degree1", "over time, 4 frames, no products", degree=1, window=4),
)
"""All arms, the reference first. Degree 2 and equal size unless the label says otherwise."""


def find_arm(name: str) -> StudyArm:
    """Return an arm by name."""
    (arm,) = networks.choose_arms(ARMS, (name,))
    return arm


def choose_arms(names: Iterable[str]) -> tuple[StudyArm, ...]:
    """Return the reference and the arms of these names, in the order of :data:`ARMS`."""
    chosen = networks.choose_arms(ARMS, names)
    return chosen if REFERENCE in chosen else (REFERENCE, *chosen)
