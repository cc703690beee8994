"""Argument checks of the layers, and activations by name."""

from __future__ import annotations

from torch import nn

from prism_motor._checks import check_choice, check_size
from prism_motor._errors import InputError, InputTypeError

__all__ = ["check_choice", "check_degree", "check_size", "make_activation"]


def check_degree(owner: str, degree: object) -> int:
    """Return ``degree`` if it is an integer of at least one, else raise."""
    if isinstance(degree, bool) or not isinstance(degree, int):
        raise InputTypeError(
            f"{owner}: degree must be an integer >= 1, got {degree!r} ({type(degree).__name__})."
        )
    if degree < 1:
        raise InputError(
            f"{owner}: degree must be at least 1, got {degree}. "
            "Degree 1 is a plain linear map, degree 2 (the default) adds pairwise products."
        )
    return degree


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
