"""What may stand between a policy and the robot at execution time."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.environment import Physics


class Corrector(Protocol):
    """Changes the actions of any policy while they are executed."""

    def reset(self, seed: int) -> None:
        """Begin an episode; whatever is random in it follows from ``seed``."""
        ...

    def correct(self, action: NDArray[np.floating], physics: Physics) -> NDArray[np.floating]:
        """Return the action to execute, given what is measured before it."""
        ...
