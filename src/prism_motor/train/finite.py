"""Stop training at the first NaN or infinity, and say where it came from."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from prism_motor._errors import PrismError


class NonFiniteTrainingError(PrismError, FloatingPointError):
    """Something became NaN or infinite during training."""


def check_update(losses: dict[str, float], models: Iterable[tuple[str, nn.Module]]) -> None:
    """Check losses, then gradients, then weights: the first is the cause of the others."""
    for name, value in losses.items():
        if not torch.isfinite(torch.tensor(value)):
            raise NonFiniteTrainingError(f"loss '{name}' is {value}")
    named = [(f"{title}.{n}", p) for title, model in models for n, p in model.named_parameters()]
    for kind, values in (
        ("gradient", [(name, p.grad) for name, p in named]),
        ("weight", [(name, p.detach()) for name, p in named]),
    ):
        for name, value in values:
            if value is not None and not torch.isfinite(value).all():
                bad = int((~torch.isfinite(value)).sum())
                raise NonFiniteTrainingError(
                    f"{kind} of '{name}' has {bad} of {value.numel()} values that are not finite"
                )
