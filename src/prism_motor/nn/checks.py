"""Argument checks of the layers, and activations by name."""

from __future__ import annotations

from torch import nn

from prism_motor._checks import check_choice, check_degree, check_size

__all__ = ["check_choice", "check_degree", "check_size", "make_activation"]


_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "identity": nn.Identity,
    "mish": nn.Mish,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


def make_activation(name: str) -> nn.Module:
    """Build an activation module by name."""
    return _ACTIVATIONS[check_choice("activation", name, _ACTIVATIONS)]()
