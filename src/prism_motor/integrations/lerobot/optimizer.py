"""Optimiser groups of the policies."""

from __future__ import annotations

from typing import Any

from torch import nn

from prism_motor.nn import parameter_groups


def optimizer_groups(model: nn.Module, conditioner: nn.Module | None) -> list[dict[str, Any]]:
    """Return all parameters of ``model``, with the gates of its conditioner out of weight decay.

    Biases and norms of the conditioner are not decayed either. LeRobot's own parameters are all in
    the first group, as without PRISM; it takes its weight decay from the optimiser's settings.
    """
    undecayed: list[nn.Parameter] = []
    if conditioner is not None:
        for group in parameter_groups(conditioner, weight_decay=1.0):
            undecayed += [] if group["weight_decay"] else group["params"]
    excluded = {id(parameter) for parameter in undecayed}
    groups: list[dict[str, Any]] = [
        {"params": [p for p in model.parameters() if id(p) not in excluded]}
    ]
    if undecayed:
        groups.append({"params": undecayed, "weight_decay": 0.0})
    return groups
