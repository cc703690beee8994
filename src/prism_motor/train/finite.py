"""Stops training at the first NaN or infinity and says where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from prism_motor._checks import PrismError


class NonFiniteTrainingError(PrismError, FloatingPointError):
    """Something became NaN or infinite during training."""


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


def check_update(losses: Mapping[str, float], models: Mapping[str, nn.Module]) -> None:
    """Check losses, then gradients, then weights, so that the cause is reported first."""
    for name, value in losses.items():
        if not torch.isfinite(torch.tensor(value)):
            raise NonFiniteTrainingError(f"loss '{name}' is {value}")
    named = [(f"{title}.{n}", p) for title, m in models.items() for n, p in m.named_parameters()]
    for kind, values in (
        ("gradient", [(name, p.grad) for name, p in named]),
        ("weight", [(name, p.detach()) for name, p in named]),
    ):
        for name, value in values:
            if value is not None and not torch.isfinite(value).all():
                bad = int((~torch.isfinite(value)).sum())
                raise NonFiniteTrainingError(
                    f"{kind} of '{name}': {bad} of {value.numel()} values are not finite"
                )
