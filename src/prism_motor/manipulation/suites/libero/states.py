"""Reading LIBERO's fixed initial states without running what is in the file.

They are arrays saved by ``torch.save``, which pickles them; unpickling a file runs any program that
somebody put into it. torch's own reader builds only what it is told to.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prism_motor._checks import PrismError

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Array


class StatesError(PrismError, ValueError):
    """A file does not hold initial states."""


def read_states(file: Path) -> Array:
    """Return the states in a file (states x values): time, positions, velocities.

    Args:
        file: An array of double precision, as LIBERO saves it.
    """
    import torch

    rebuild = np.zeros(0).__reduce__()[0]
    # numpy 2 has moved the function; files keep the name that they were written with.
    names = [f"numpy.{core}.multiarray._reconstruct" for core in ("core", "_core")]
    allowed = [np.ndarray, np.dtype, type(np.dtype(float)), *((rebuild, name) for name in names)]
    try:
        with torch.serialization.safe_globals(allowed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about other pickles than its own
            states = torch.load(file, weights_only=True)
    except OSError as error:
        raise StatesError(f"Cannot read {file}: {error.strerror or error}.") from error
    except Exception as error:  # of any kind, since a file can hold anything
        raise _not_states(file, "it is damaged or holds other things") from error
    if not isinstance(states, np.ndarray) or states.dtype != float or states.ndim != 2:
        raise _not_states(file, f"it holds another {type(states).__name__}")
    if not states.size or not np.isfinite(states).all():
        raise _not_states(file, "it is empty or has numbers that are not finite")
    return states


def _not_states(file: Path, why: str) -> StatesError:
    return StatesError(
        f"{file} is no table of initial states as LIBERO saves them: {why}. Nothing in it was run. "
        "Install LIBERO again: pip install --force-reinstall --no-deps hf-libero"
    )
