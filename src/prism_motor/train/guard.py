"""Stop training at the first observation or reward that is not finite."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from prism_motor.train.finite import NonFiniteTrainingError


def check_step(observations: Iterable[tuple[str, Tensor]], rewards: Tensor) -> None:
    """Check what the environment returned."""
    for name, values in observations:
        if not torch.isfinite(values).all():
            env, entry = (~torch.isfinite(values)).nonzero()[0].tolist()
            raise NonFiniteTrainingError(
                f"observation '{name}' of environment {env}, entry {entry}, is "
                f"{values[env, entry].item()}"
            )
    if not torch.isfinite(rewards).all():
        env = int((~torch.isfinite(rewards)).nonzero()[0])
        raise NonFiniteTrainingError(f"reward of environment {env} is {rewards[env].item()}")
