"""Checks of values that users give; messages say what was given, what is allowed, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

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


def check_choice(what: str, given: object, allowed: Iterable[str]) -> str:
    """Return ``given`` if it is one of ``allowed``, else raise and suggest the nearest name."""
    names = sorted(allowed)
    if isinstance(given, str) and given in names:
        return given
    close = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InputError(f"Unknown {what} {given!r}; choose one of: {', '.join(names)}.{hint}")
