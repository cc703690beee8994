"""What every scripted expert offers, whatever benchmark it is for."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Expert(Protocol):
    """A scripted policy that looks at the privileged state of the environment it was made for.

    ``prism_motor.manipulation.make.make_expert`` returns the one of an environment.
    """

    def reset(self) -> None:
        """Forget the last episode; call it after every reset of the environment."""
        ...

    def act(self) -> NDArray[np.float32]:
        """Return the next action, in [-1, 1], for the state the environment is in now."""
        ...
