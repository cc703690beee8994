"""Who puts the thing somewhere new between two episodes, where nobody tells that one has ended."""

from __future__ import annotations

import itertools

import numpy as np

from prism_motor.sim.so101.placement import Placement
from prism_motor.sim.so101.twin import Twin

NEAR_HOME = 8.0
"""How far each joint of the arm may be from home to be there, degrees; the gripper may do what it
likes."""


class Operator:
    """Re-places the thing once the arm has been at home for a while after having left it.

    Placements follow from the seed: the next one is that of the next seed. Whoever asks for a
    placement of their own decides on all later ones, too.

    Args:
        twin: Where the thing is.
        seed: Seed of the first placement.
        patience: Seconds at home.
    """

    def __init__(self, twin: Twin, seed: int = 0, patience: float = 0.5) -> None:
        self.twin, self.patience = twin, patience
        self.placements = 0
        self._seeds = itertools.count(seed)
        self.place()

    def place(self, seed: int | None = None) -> Placement:
        """Put the thing where a seed says, by default the next one; the arm is at home then."""
        self._automatic = seed is None
        self.twin.reset(seed=next(self._seeds) if seed is None else seed)
        self.placements += 1
        self._home = self.twin.positions()[:-1]
        self._left = False
        self._waited = 0.0
        return self.twin.pose

    @property
    def at_home(self) -> bool:
        """Whether the arm is at home now."""
        away = np.abs(self.twin.positions()[:-1] - self._home)
        return bool(away.max() < NEAR_HOME)

    def watch(self, seconds: float) -> bool:
        """Look after some simulated time has passed; return whether the thing was re-placed."""
        if not self.at_home:
            self._left, self._waited = True, 0.0
            return False
        self._waited += seconds
        due = self._left and self._waited >= self.patience - 1e-9
        return due and self._automatic and self._replaced()

    def pause(self) -> bool:
        """Use a pause between two episodes; return whether the thing was re-placed.

        The operator brings the arm home, too, if it has left it.
        """
        self._left |= not self.at_home
        return self._left and self._automatic and self._replaced()

    def _replaced(self) -> bool:
        self.place()
        return True
