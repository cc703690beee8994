"""The MLP trunk of actors."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from prism_motor.nn.conditioner import make_activation


def make_mlp(
    in_features: int, hidden: tuple[int, ...], out_features: int, activation: str
) -> nn.Sequential:
    """Build ``Linear, activation, ..., Linear`` with PyTorch's default initialisation."""
    layers: list[nn.Module] = []
    width = in_features
    for size in hidden:
        layers += [nn.Linear(width, size), make_activation(activation)]
        width = size
    return nn.Sequential(*layers, nn.Linear(width, out_features))


def insert_after(trunk: nn.Sequential, make: Callable[[int], nn.Module | None]) -> None:
    """Insert a module between the hidden layers of a trunk and its last linear one.

    That one becomes ``Sequential(module, Linear)``; the names of all others stay as they are.

    Args:
        trunk: The trunk, ours or rsl_rl's.
        make: Makes the module from the number of hidden features; ``None`` for none.
    """
    last = max(i for i, part in enumerate(trunk) if isinstance(part, nn.Linear))
    linear = trunk[last]
    assert isinstance(linear, nn.Linear)
    module = make(linear.in_features)
    if module is not None:
        trunk[last] = nn.Sequential(module, linear)


def layer_after(trunk: nn.Sequential) -> nn.Module | None:
    """Return what :func:`insert_after` inserted, if anything."""
    last = [part for part in trunk if isinstance(part, nn.Linear | nn.Sequential)][-1]
    return last[0] if isinstance(last, nn.Sequential) and len(last) == 2 else None
