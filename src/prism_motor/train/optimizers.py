"""Optimisers as checkpoints hold them: tensors by name, and the settings of their groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from prism_motor.runs.checkpoints import select


def pack_optimizer(
    optimizer: torch.optim.Optimizer, prefix: str = "optimizer."
) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """Return the tensors of an optimiser by prefix, parameter and entry, and its groups."""
    saved = optimizer.state_dict()
    tensors = {
        f"{prefix}{index}.{entry}": value
        for index, entries in saved["state"].items()
        for entry, value in entries.items()
    }
    return tensors, saved["param_groups"]


def unpack_optimizer(
    optimizer: torch.optim.Optimizer,
    tensors: Mapping[str, Tensor],
    groups: list[dict[str, Any]],
    prefix: str = "optimizer.",
) -> None:
    """Continue with what :func:`pack_optimizer` returned; other tensors are ignored."""
    entries: dict[int, dict[str, Tensor]] = defaultdict(dict)
    for name, value in select(dict(tensors), prefix).items():
        index, entry = name.split(".", 1)
        # Optimisers keep CPU tensors as they are given, and then change them in place.
        entries[int(index)][entry] = value.clone()
    optimizer.load_state_dict({"state": dict(entries), "param_groups": groups})
