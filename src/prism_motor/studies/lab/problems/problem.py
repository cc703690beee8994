"""What a problem of the laboratory is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prism_motor.studies.fitting import Split, Splits
from prism_motor.studies.temporal import History


@dataclass(frozen=True)
class DataRequest:
    """What data are needed; everything random in them comes from the seed."""

    samples: int
    """Training rows."""
    held_out: int
    """Rows of each of the validation, test and extrapolation parts."""
    reach: float
    """How far the extrapolation part goes beyond the range of training, as a factor."""
    seed: int
    """Seed of the data."""


@dataclass(frozen=True)
class Problem:
    """A quantity or a control law to learn, whose right answer is known."""

    name: str
    """Key in records and on the command line."""
    title: str
    """Name for readers."""
    formula: str
    """The right answer in one line."""
    signals: str
    """What the network sees."""
    shape: tuple[int, int]
    """Number of inputs and of outputs."""
    factors: int
    """How many signals or estimates the right answer multiplies in its longest product; 1 if it
    multiplies none."""
    make: Callable[[DataRequest], Splits]
    """Draws the data."""
    history: History = ()
    """The inputs that are frames of a history; empty if none are."""


def independent(
    draw: Callable[[np.random.Generator, int, float], Split],
) -> Callable[[DataRequest], Splits]:
    """Make a problem's data from a function that draws independent rows.

    Args:
        draw: Takes a generator, the number of rows, and the factor on the range of the inputs.
    """

    def make(request: DataRequest) -> Splits:
        train, validation, test, beyond = np.random.default_rng(request.seed).spawn(4)
        return Splits(
            train=draw(train, request.samples, 1.0),
            validation=draw(validation, request.held_out, 1.0),
            test=draw(test, request.held_out, 1.0),
            extrapolation=draw(beyond, request.held_out, request.reach),
        )

    return make
