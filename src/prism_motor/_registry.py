"""Tables of things by name that users can add to."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from prism_motor._checks import check_choice
from prism_motor._errors import InputError

T = TypeVar("T")


def resolve(place: str) -> Any:
    """Import ``"module:NAME"``."""
    module, colon, name = place.partition(":")
    if not colon:
        raise InputError(f"Expected module:NAME, e.g. my_module:my_function, got {place!r}.")
    return getattr(importlib.import_module(module), name)


class Registry(Mapping[str, T], Generic[T]):
    """Things by name; an entry given as ``"module:NAME"`` is imported when it is asked for.

    Args:
        what: What an entry is called in messages, e.g. ``"robot"``.
        entries: What is there from the start.
    """

    def __init__(self, what: str, entries: Mapping[str, T | str] | None = None) -> None:
        self.what = what
        self._entries: dict[str, T | str] = dict(entries or {})

    def register(self, name: str, entry: T) -> T:
        """Add an entry; the same one may be added again, another one of that name may not."""
        known = self._entries.get(name)
        if known is not None and known is not entry and not _same_source(known, entry):
            raise InputError(
                f"There is a {self.what} called {name!r} already; choose another name."
            )
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        """Return an entry, or raise an error that names the nearest one."""
        if name not in self._entries:
            hint = "Is it in a module of yours? Give that by --plugin."
            try:
                check_choice(self.what, name, self._entries)
            except InputError as error:
                raise InputError(f"{error} {hint}") from None
        entry = self._entries[name]
        if isinstance(entry, str):
            entry = self._entries[name] = resolve(entry)
        return entry  # type: ignore[return-value]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _same_source(one: object, other: object) -> bool:
    """Say whether two entries are of one line of source: a module that was imported twice."""
    names = [
        (getattr(x, "__module__", None), getattr(x, "__qualname__", None)) for x in (one, other)
    ]
    return names[0] == names[1] and None not in names[0]
