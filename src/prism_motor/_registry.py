"""Tables of named entries that users can add to."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from prism_motor._checks import InputError, check_choice, check_name

T = TypeVar("T")


def resolve(place: str) -> Any:
    """Import ``"module:NAME"``."""
    module, colon, name = place.partition(":")
    if not colon:
        raise InputError(f"Expected module:NAME, e.g. my_module:my_function, got {place!r}.")
    return getattr(importlib.import_module(module), name)


class Registry(Mapping[str, T], Generic[T]):
    """Entries by name; one given as ``"module:NAME"`` is imported when it is looked up.

    Args:
        what: What an entry is called in messages, e.g. ``"robot"``.
        own: Built-in entries; they cannot be replaced.
    """

    def __init__(self, what: str, own: Mapping[str, T | str] | None = None) -> None:
        self.what = what
        self._entries: dict[str, Any] = dict(own or {})
        self._own = frozenset(self._entries)

    @property
    def own(self) -> frozenset[str]:
        """Names of the built-in entries."""
        return self._own

    def close(self) -> None:
        """Make everything registered so far built-in."""
        self._own = frozenset(self._entries)

    def remove(self, name: str) -> None:
        """Remove a user's entry, if it is there."""
        if name not in self._own:
            self._entries.pop(name, None)

    def register(self, name: str, entry: T) -> T:
        """Add a user's entry; adding the same one again, as when a module is reloaded, is fine."""
        check_name(self.what, name)
        if name in self._own:
            raise InputError(
                f"There is a built-in {self.what} called {name!r}, which cannot be replaced. "
                "Choose another name."
            )
        if name in self and _source(self._entries[name]) != _source(entry):
            raise InputError(
                f"A {self.what} called {name!r} is already registered by other code. "
                "Choose another name for one of them."
            )
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        """Return an entry, or raise an error that names the nearest one."""
        if name not in self:
            try:
                check_choice(self.what, name, self._entries)
            except InputError as error:
                raise InputError(
                    f"{error} If it is defined in your own module, load that module with "
                    "--plugin MODULE."
                ) from None
        if isinstance(self._entries[name], str):
            self._entries[name] = resolve(self._entries[name])
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _source(entry: Any) -> Any:
    """Return what stays the same when the module that made an entry is reloaded."""
    entry = getattr(entry, "make", entry)  # an entry that holds a function or a class
    kind = entry if isinstance(entry, type) else type(entry)
    code = getattr(entry, "__code__", None)
    if code is not None:
        return (code.co_filename, entry.__qualname__)
    if kind.__module__ != "builtins" and (kind is entry or entry.__hash__ is None):
        module = sys.modules.get(kind.__module__)
        return (getattr(module, "__file__", None), kind.__qualname__)
    return entry
