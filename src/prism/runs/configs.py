"""Frozen dataclass configs to plain data and back; unknown keys are errors."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from typing import Any, TypeVar

T = TypeVar("T")


class ConfigError(ValueError):
    """A config does not fit its dataclass."""


def to_dict(config: Any) -> dict[str, Any]:
    """Turn a dataclass into nested dicts and lists that JSON can hold."""
    return {field.name: _plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):  # a config that knows its own name, e.g. one of several actors
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def from_dict(kind: type[T], data: dict[str, Any], where: str = "config") -> T:
    """Build a dataclass from plain data.

    Args:
        kind: The dataclass.
        data: Its fields; missing ones take their defaults, unknown ones are errors.
        where: Path of ``data`` for error messages.
    """
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: expected settings by name, got {type(data).__name__}.")
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for key in data:
        if key not in names:
            close = difflib.get_close_matches(key, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"{where}: unknown key {key!r}; allowed: {', '.join(names)}.{hint}")
    return kind(**{key: _typed(hints[key], value, f"{where}.{key}") for key, value in data.items()})


def _typed(hint: Any, value: Any, where: str) -> Any:
    if hasattr(hint, "from_dict"):
        return hint.from_dict(value)
    if dataclasses.is_dataclass(hint):
        return from_dict(typing.cast(type, hint), value, where)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in typing.get_args(hint):
            return None
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        return _typed(options[0], value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where}: expected a list, got {value!r}.")
        inner = typing.get_args(hint)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_typed(inner[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        if len(inner) != len(value):
            raise ConfigError(f"{where}: expected {len(inner)} values, got {len(value)}.")
        return tuple(
            _typed(kind, item, f"{where}[{i}]")
            for i, (kind, item) in enumerate(zip(inner, value, strict=True))
        )
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in (bool, int, float, str) and (
        not isinstance(value, hint) or (hint is int and isinstance(value, bool))
    ):
        raise ConfigError(
            f"{where}: expected {hint.__name__}, got {value!r} ({type(value).__name__})."
        )
    return value
