"""Things by name that users can add to: robots, reward terms, tasks."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

from prism_motor._errors import InputError
from prism_motor.nn.checks import check_choice

T = TypeVar("T")


class Registry(dict[str, T]):
    """Things of one kind by name.

    Args:
        what: What they are, for messages, e.g. ``"robot"``.
        own: What comes with the package; it cannot be replaced.
    """

    def __init__(self, what: str, own: Mapping[str, T] | None = None) -> None:
        super().__init__(own or {})
        self.what = what
        self.own = frozenset(self)

    def register(self, name: str, value: T) -> T:
        """Add something of a user's; the same again, as when a module is loaded twice, is fine."""
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise InputError(
                f"{name!r} cannot be the name of a {self.what}: use letters, digits, '-' and '_'."
            )
        if name in self.own:
            raise InputError(
                f"There is a built-in {self.what} called {name!r}, which cannot be replaced. "
                "Choose another name."
            )
        if name in self and _identity(self[name]) != _identity(value):
            raise InputError(
                f"A {self.what} called {name!r} is registered already, by another piece of code. "
                "Choose another name for one of them."
            )
        self[name] = value
        return value

    def find(self, name: str) -> T:
        """Return what is registered under a name, or say what there is."""
        if name not in self:
            try:
                check_choice(self.what, name, self)
            except InputError as error:
                raise InputError(
                    f"{error} If it is defined in a module of your own, load that module with "
                    "--plugin MODULE."
                ) from None
        return self[name]


def _identity(value: Any) -> Any:
    """Return what stays the same when the module that made a value is loaded again."""
    value = getattr(value, "make", value)  # an entry that holds a function or a class
    if isinstance(value, type):
        module = sys.modules.get(value.__module__)
        return (getattr(module, "__file__", None), value.__qualname__)
    code = getattr(value, "__code__", None)
    return value if code is None else (code.co_filename, value.__qualname__)
