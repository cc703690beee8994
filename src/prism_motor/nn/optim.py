"""Optimiser groups that keep weight decay away from what it would damage."""

from __future__ import annotations

from typing import Any

from torch import nn

from prism_motor._checks import InputError
from prism_motor.nn.encoders import ResidualEncoder
from prism_motor.nn.polynomial import PolynomialLayer

_NORMS = (
    nn.LayerNorm,
    nn.RMSNorm,
    nn.GroupNorm,
    nn.modules.batchnorm._BatchNorm,
    nn.modules.instancenorm._InstanceNorm,
)


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Split the trainable parameters into a decayed and an undecayed group.

    Gates, biases and norms are not decayed: decay on the gates pulls the learned interactions to
    zero. Use as ``torch.optim.AdamW(parameter_groups(policy, 1e-6), lr=1e-4)``.

    Args:
        model: Any module.
        weight_decay: Decay of the weights.
    """
    if weight_decay < 0:
        raise InputError(f"parameter_groups: weight_decay must be >= 0, got {weight_decay}.")
    undecayed_ids: set[int] = set()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            is_gate = isinstance(module, PolynomialLayer | ResidualEncoder) and name == "gate"
            if is_gate or "bias" in name or isinstance(module, _NORMS):
                undecayed_ids.add(id(parameter))
    trainable = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in trainable if id(p) not in undecayed_ids]
    undecayed = [p for p in trainable if id(p) in undecayed_ids]
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": undecayed, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
