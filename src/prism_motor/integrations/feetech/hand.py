"""A hand that moves an emulated arm while its motors are off, as LeRobot's calibration asks."""

from __future__ import annotations

import math

from prism_motor._checks import check_choice
from prism_motor.sim.so101.units import CENTRE, tick_ranges

MOVES = {
    "middle": "every joint in the middle of its range",
    "sweep": "every joint through its whole range and back, in four seconds",
}
"""What the hand can do, by name."""

_PERIOD = 4.0


class ArmHand:
    """Where somebody holds the six joints, in ticks.

    Args:
        move: One of ``MOVES``.
    """

    def __init__(self, move: str = "middle") -> None:
        self.move(move)

    def move(self, name: str) -> None:
        """Do something else from now on."""
        self._move = check_choice("move of the hand", name, MOVES)

    def __call__(self, seconds: float) -> list[float]:
        """Return the ticks of all joints after some time."""
        if self._move == "middle":
            return [float(CENTRE)] * len(tick_ranges())
        share = (1 - math.cos(2 * math.pi * seconds / _PERIOD)) / 2
        return [one.low + share * (one.high - one.low) for one in tick_ranges().values()]
