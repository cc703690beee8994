"""Ranges of settings: written at the field, checked here, shown by ``--help``.

A range belongs to the annotation of a field and holds for every number in it, in a tuple, in a
table or beside ``None``::

    @dataclass(frozen=True)
    class Example(Checked, section="example"):
        gamma: Annotated[float, above(0, 1)] = 0.99
        widths: Annotated[tuple[int, ...], between(1, 4096), length(1, 8)] = (64, 64)
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from prism_motor._checks import InputError, show


@dataclass(frozen=True)
class Bounds:
    """The numbers that are allowed."""

    low: float
    """The lowest."""
    high: float
    """The highest."""
    low_open: bool = False
    """Whether the lowest itself is excluded."""
    high_open: bool = False
    """Whether the highest itself is excluded."""

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.low_open else value >= self.low
        return above and (value < self.high if self.high_open else value <= self.high)

    def __str__(self) -> str:
        if not self.low_open and not self.high_open:
            return f"from {_number(self.low)} to {_number(self.high)}"
        least = f"{'above' if self.low_open else 'at least'} {_number(self.low)}"
        return f"{least} and {'below' if self.high_open else 'at most'} {_number(self.high)}"


@dataclass(frozen=True)
class Length:
    """How many values a list may have."""

    low: int
    """The fewest."""
    high: int
    """The most."""

    def __str__(self) -> str:
        fewest = "" if self.low == self.high else f"{self.low} to "
        return f"{fewest}{self.high} {'value' if self.high == 1 else 'values'}"


@dataclass(frozen=True)
class Form:
    """What a text may look like."""

    pattern: str
    """Regular expression of the whole text."""
    described: str
    """The same in words: ``cpu, cuda or mps``."""

    def __str__(self) -> str:
        return self.described


def between(low: float, high: float) -> Bounds:
    """Allow numbers from ``low`` to ``high``."""
    return Bounds(low, high)


def above(low: float, high: float) -> Bounds:
    """Allow numbers above ``low``, up to ``high``."""
    return Bounds(low, high, low_open=True)


def length(low: int, high: int) -> Length:
    """Allow lists of ``low`` to ``high`` values."""
    return Length(low, high)


def form(pattern: str, described: str) -> Form:
    """Allow texts that a regular expression matches."""
    return Form(pattern, described)


Seed = Annotated[int, between(0, 2**31 - 1)]
"""A seed of random numbers."""
Seeds = Annotated[tuple[Seed, ...], length(1, 10_000)]
"""Several seeds."""
Count = Annotated[int, between(1, 10**9)]
"""How many of something, at least one."""
Step = Annotated[int, between(0, 10**9)]
"""Number of an update, of which there may be a checkpoint."""
Threads = Annotated[int, between(1, 1024)]
"""Threads or processes that work at the same time."""


class Checked:
    """Base of settings: a frozen dataclass whose values are checked when it is made."""

    section: ClassVar[str] = ""
    """Where the settings are in a config, for messages: ``ppo``; ``--`` for flags of a command."""

    def __init_subclass__(cls, *, section: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if section is not None:
            cls.section = section

    def __post_init__(self) -> None:
        check_ranges(self)


def check_ranges(config: Any) -> None:
    """Raise unless all values of a dataclass have the types and ranges of their fields."""
    section = getattr(config, "section", "")
    for name, hint in field_hints(type(config)).items():
        where = _flag(name) if section == "--" else f"{section}.{name}".lstrip(".")
        _check(hint, getattr(config, name), where)


def check_arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Raise unless the arguments of a command have the types and ranges of its annotations."""
    hints = typing.get_type_hints(function, include_extras=True)
    for name, value in values.items():
        if name in hints:
            _check(hints[name], value, _flag(name))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@cache
def field_hints(kind: type[Any]) -> dict[str, Any]:
    """Return the annotations of a dataclass's fields, with their ranges."""
    found = typing.get_type_hints(kind, include_extras=True)
    return {field.name: found[field.name] for field in dataclasses.fields(kind)}


def describe_range(hint: Any) -> str:
    """Describe the range in an annotation: ``above 0 and at most 1``; empty without one."""
    marks = sorted(_marks(hint), key=lambda mark: isinstance(mark, Bounds))
    parts = [str(mark) for mark in marks]
    if not any(isinstance(mark, Bounds) for mark in marks):
        inner = dict.fromkeys(describe_range(one) for one in typing.get_args(_plain(hint)))
        parts += [", ".join(text for text in inner if text)]
    return ", each ".join(part for part in parts if part)


def _check(hint: Any, value: Any, where: str, bounds: Bounds | None = None) -> None:
    for mark in _marks(hint):
        if isinstance(mark, Bounds):
            bounds = mark
        elif isinstance(mark, Form):
            if isinstance(value, str) and not re.fullmatch(mark.pattern, value):
                raise InputError(f"{where} must be {mark}, got {show(value)}.")
        elif isinstance(value, tuple | list) and not mark.low <= len(value) <= mark.high:
            raise InputError(f"{where} must have {mark}, got {len(value)}.")
    hint = _plain(hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is not None or type(None) not in inner:
            _check_either([one for one in inner if one is not type(None)], value, where, bounds)
    elif origin is tuple:
        _check_tuple(inner, value, where, bounds)
    elif origin is dict:
        if not isinstance(value, Mapping):
            raise InputError(f"{where} must be values by name, got {show(value)}.")
        for name, one in value.items():
            _check(inner[0], name, f"A name in {where}")
            _check(inner[1], one, f"{where}.{name}", bounds)
    elif origin is typing.Literal:
        if value not in inner:
            raise InputError(
                f"{where} must be one of {', '.join(map(str, inner))}, got {show(value)}."
            )
    elif hint in (int, float):
        _check_number(hint, value, where, bounds)
    elif hint in (bool, str) and not isinstance(value, hint):
        raise InputError(f"{where} must be {_KINDS[hint]}, got {show(value)}.")
    elif dataclasses.is_dataclass(hint) and not isinstance(value, typing.cast(type, hint)):
        raise InputError(f"{where} must be a group of settings, got {show(value)}.")


def _check_either(hints: list[Any], value: Any, where: str, bounds: Bounds | None) -> None:
    """Raise the error of the first of several types, unless the value has another of them."""
    first, *others = hints
    try:
        _check(first, value, where, bounds)
    except InputError:
        for other in others:
            try:
                return _check(other, value, where, bounds)
            except InputError:
                continue
        raise
    return None


def _check_tuple(inner: tuple[Any, ...], value: Any, where: str, bounds: Bounds | None) -> None:
    if not isinstance(value, tuple | list):
        raise InputError(f"{where} must be a list, got {show(value)}.")
    if len(inner) == 2 and inner[1] is Ellipsis:
        inner = inner[:1] * len(value)
    if len(inner) != len(value):
        raise InputError(f"{where} must have {len(inner)} values, got {len(value)}.")
    for i, (one, item) in enumerate(zip(inner, value, strict=True)):
        _check(one, item, f"{where}[{i}]", bounds)


def _check_number(kind: type, value: Any, where: str, bounds: Bounds | None) -> None:
    allowed = f" {bounds}" if bounds is not None else ""
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        raise InputError(
            f"{where} must be {_KINDS[kind]}{allowed}, got {show(value)} ({type(value).__name__})."
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{where} must be a finite number{allowed}, got {value}.")
    if bounds is not None and value not in bounds:
        raise InputError(f"{where} must be{allowed}, got {show(value)}.")


_KINDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
}


def _marks(hint: Any) -> list[Bounds | Length | Form]:
    metadata = typing.get_args(hint)[1:] if typing.get_origin(hint) is Annotated else ()
    return [mark for mark in metadata if isinstance(mark, Bounds | Length | Form)]


def _plain(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _number(value: float) -> str:
    short = f"{value:g}".replace("e+0", "e").replace("e-0", "e-")
    return short if float(short) == value else str(value)
