"""Argument checks whose messages say what was given, what is allowed and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from torch import nn

from prism_motor._errors import InputError, InputTypeError


def check_size(owner: str, name: str, value: object) -> int:
    """Return ``value`` if it is a positive integer, else raise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputTypeError(
            f"{owner}: {name} must be a positive integer, got {value!r} ({type(value).__name__})."
        )
    if value < 1:
        raise InputError(f"{owner}: {name} must be at least 1, got {value}.")
    return value


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


def check_choice(what: str, given: object, allowed: Iterable[str]) -> str:
    """Return ``given`` if it is one of ``allowed``, else raise and suggest the nearest name."""
    names = sorted(allowed)
    if isinstance(given, str) and given in names:
        return given
    close = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InputError(f"Unknown {what} {given!r}; choose one of: {', '.join(names)}.{hint}")


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
