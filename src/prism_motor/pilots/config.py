"""The settings of a pilot, which become its plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from prism_motor._checks import InputError
from prism_motor._devices import Device
from prism_motor._ranges import Checked, Seed, above, between, length

Rate = Annotated[float, between(0, 1)]
"""A share of successes."""


@dataclass(frozen=True)
class PilotConfig(Checked, section="--"):
    """What is decided before the first trial."""

    criterion: str
    """When a trial is a success, in words that leave no doubt."""
    trials: Annotated[int, between(2, 1000)] = 10
    """Trials of each arm, each at a start pose of its own that all arms share."""
    limit: Annotated[float, above(0, 3600)] = 15.0
    """Longest time of a trial, s."""
    fps: Annotated[int, between(1, 1000)] | None = None
    """Control steps per second; default: those of the demonstrations, else 30."""
    test: Literal["mcnemar", "boschloo"] = "mcnemar"
    """Primary test: mcnemar compares the arms pose by pose, boschloo ignores the pairs."""
    reference: str | None = None
    """Arm that the others are compared with; default: the first."""
    rates: Annotated[tuple[Rate, ...], length(2, 20)] = (0.3, 0.9, 0.5, 0.9, 0.3, 0.7)
    """Pairs of true success rates for which the power of the primary test is shown."""
    task: str = ""
    """Instruction for policies that follow one."""
    home: Annotated[tuple[float, ...], length(1, 100)] | None = None
    """Where the robot goes before each trial, in the order and units of its actions; default:
    where it is when the first trial begins."""
    home_seconds: Annotated[float, between(0, 60)] = 2.0
    """Duration of that motion, s."""
    poses: Path | None = None
    """Folder of pictures POSE-CAMERA.png (1-agent.png, ...) of the start poses; default: the first
    trial at a pose takes them."""
    seed: Seed = 0
    """Seed of order, start poses and the policies' noise; which letter an arm gets is not part of
    it."""
    device: Device | None = None
    """Where policies compute; default: where they were trained, if this machine can."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.criterion.strip():
            raise InputError("--criterion is empty: say in words when a trial is a success.")
        if len(self.rates) % 2:
            raise InputError(f"--rates takes pairs of true rates, got {len(self.rates)} numbers.")

    @property
    def rate_pairs(self) -> list[tuple[float, float]]:
        """The pairs of true rates."""
        return list(zip(self.rates[::2], self.rates[1::2], strict=True))
