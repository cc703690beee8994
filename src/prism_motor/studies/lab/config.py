"""Settings of the laboratory: what is compared, and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from prism_motor._ranges import Checked, Count, Threads, above, between, length

FIRST_REPORTED, FIRST_CONFIRMED, FIRST_TUNING = 1, 101, 901
"""First seeds of each kind: reported, for the one confirmation, and for tuning."""


@dataclass(frozen=True)
class LabConfig(Checked, section="lab"):
    """Which problems, arms, sizes and amounts of data; the same training for all.

    A seed decides everything random: data, initial weights and the order of batches. So intervals
    over seeds cover another draw of the data, and arms are paired by seed.
    """

    problems: tuple[str, ...] = ()
    """Which problems, by name; empty for all."""
    arms: tuple[str, ...] = ()
    """Which arms, by name, besides the reference; empty for all."""
    sizes: Annotated[tuple[int, ...], between(500, 10_000_000), length(1, 20)] = (4000,)
    """Parameters of every network, within 1 %."""
    samples: Annotated[tuple[int, ...], between(10, 10_000_000), length(1, 20)] = (10_000,)
    """Training rows."""
    seeds: Annotated[int, between(2, 100)] = 10
    """Number of reported seeds: 1, 2, ... (at least 2, for the intervals)."""
    tuning_seeds: Annotated[int, between(1, 99)] = 2
    """Number of tuning seeds: 901, 902, ..., which are never reported."""
    learning_rates: Annotated[tuple[float, ...], above(0, 100), length(1, 100)] = (
        1e-2,
        2e-2,
        4e-2,
        8e-2,
        1.6e-1,
    )
    """Peak learning rates, the only setting that is tuned; the same for every arm."""
    updates: Count = 1000
    """Training updates."""
    batch: Annotated[int, between(1, 1_000_000)] = 128
    """Rows per update."""
    held_out: Annotated[int, between(10, 1_000_000)] = 4000
    """Rows of each of the validation, test and extrapolation parts."""
    reach: Annotated[float, above(0, 100)] = 1.5
    """Factor on the range of the inputs in the extrapolation part."""
    jobs: Threads = 1
    """Number of worker processes, with one thread each."""

    @property
    def reported(self) -> range:
        """The reported seeds."""
        return range(FIRST_REPORTED, FIRST_REPORTED + self.seeds)

    @property
    def tuning(self) -> range:
        """The tuning seeds."""
        return range(FIRST_TUNING, FIRST_TUNING + self.tuning_seeds)


TRAINING = ("updates", "batch", "held_out", "reach")
"""Fields that all cells of a folder share; the others say which cells there are."""

_FEW = ("mlp-matched", "prism", "prism-gate1", "prism-after-gate1", "prism-both-gate1")

PRESETS: dict[str, LabConfig] = {
    "quick": LabConfig(
        problems=("arm-joint-power", "gain-schedule", "linear"),
        arms=("prism", "prism-gate1"),
        samples=(1000,),
        seeds=2,
        tuning_seeds=1,
        learning_rates=(5e-3, 2e-2),
        updates=100,
        held_out=1000,
    ),
    "screen": LabConfig(seeds=3, tuning_seeds=1),
    "full": LabConfig(),
    "sizes": LabConfig(arms=_FEW, sizes=(1000, 4000, 16_000, 64_000, 256_000, 1_000_000)),
    "data": LabConfig(arms=_FEW, samples=(100, 1000, 10_000, 100_000)),
}
"""Settings by name: a check that it works, a first look, all arms, and the two other axes."""
