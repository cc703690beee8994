"""Conversion of frozen dataclass configs to plain data and back; unknown keys are errors."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from prism_motor._checks import InputError, show

T = TypeVar("T")


class ConfigError(InputError):
    """A config does not fit its dataclass."""


def to_dict(config: Any) -> dict[str, Any]:
    """Turn a dataclass into nested dicts and lists that JSON can hold."""
    return {field.name: _plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):  # a config that stores its name, e.g. one of several actors
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):  # a copy: the config must not change with it
        return {key: _plain(item) for key, item in value.items()}
    return value


def from_dict(kind: type[T], data: dict[str, Any], where: str = "config") -> T:
    """Build a dataclass from plain data.

    Args:
        kind: The dataclass.
        data: Its fields; missing ones take their defaults, unknown ones are errors.
        where: Path of ``data`` for error messages.
    """
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: expected a table of settings, got {type(data).__name__}.")
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for key in data:
        if key not in names:
            close = difflib.get_close_matches(key, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigError(
                f"{where}: unknown key {show(key)}; allowed: {', '.join(names)}.{hint}"
            )
    values = {key: _typed(hints[key], value, f"{where}.{key}") for key, value in data.items()}
    missing = [field.name for field in _required(kind) if field.name not in values]
    if missing:
        raise ConfigError(f"{where}: {', '.join(missing)} must be given.")
    return kind(**values)


def _required(kind: Any) -> list[dataclasses.Field[Any]]:
    nothing = dataclasses.MISSING
    fields = dataclasses.fields(kind)
    return [one for one in fields if one.default is nothing and one.default_factory is nothing]


def to_flags(config: Any, usual: Any = None) -> list[str]:
    """Return a flat dataclass as command-line flags, without fields that have their default.

    Args:
        config: The dataclass.
        usual: One of the same kind with the defaults of the command; default: those of the class.
    """
    flags: list[str] = []
    for field in dataclasses.fields(config):
        value, default = getattr(config, field.name), field.default
        if usual is not None:
            default = getattr(usual, field.name)
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if value == default:
            continue
        name = field.name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, tuple):
            flags += [f"--{name}", *map(str, value)]
        else:
            flags += [f"--{name}", str(value)]
    return flags


def _typed(hint: Any, value: Any, where: str) -> Any:
    if hasattr(hint, "from_dict"):
        return hint.from_dict(value)
    if dataclasses.is_dataclass(hint):
        if isinstance(value, typing.cast(type, hint)):  # already converted
            return value
        return from_dict(typing.cast(type, hint), value, where)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in typing.get_args(hint):
            return None
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        return _typed(options[0], value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where}: expected a list, got {show(value)}.")
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
        try:
            return float(value)
        except OverflowError:
            raise ConfigError(f"{where}: {show(value)} is too large for a number.") from None
    if hint is float and isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: expected a finite number, got {value!r}.")
    if hint in (bool, int, float, str) and (
        not isinstance(value, hint) or (hint is int and isinstance(value, bool))
    ):
        raise ConfigError(
            f"{where}: expected {hint.__name__}, got {show(value)} ({type(value).__name__})."
        )
    return value


def apply_overrides(config: T, overrides: Mapping[str, Any], where: str = "") -> T:
    """Return a dataclass config with some of its settings replaced.

    Args:
        config: The config; sections may be configs too.
        overrides: New values by dotted key, ``{"ppo.learning_rate": 5e-4}``, or the same as nested
            tables. Unknown keys and values of another type are errors.
        where: Prefix of the keys in error messages, e.g. ``"actor."``.
    """
    known = sorted(_keys(config, where))
    return _overridden(config, _nested(flatten(overrides)), where, known)


def flatten(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested tables to dotted keys; a key given twice is an error.

    An empty table stays as it is, so that it is noticed where a value belongs.
    """
    if not isinstance(tables, Mapping):
        raise ConfigError(f"Expected settings by name, got {show(tables)}.")
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        inner = flatten(value) if isinstance(value, Mapping) and value else {"": value}
        for name, item in inner.items():
            full = f"{key}.{name}" if name else key
            if full in flat:
                raise ConfigError(f"{full} is given twice.")
            flat[full] = item
    return flat


def flatten_overrides(
    overrides: Mapping[str, Any] | None, fixed: Sequence[str] = ()
) -> dict[str, Any]:
    """Flatten what differs from a preset; what names the run is no setting but an error.

    Args:
        overrides: Settings by dotted key, or nested tables of them.
        fixed: Further keys that follow from the run's name.
    """
    changes = flatten(overrides or {})
    for key in changes:
        if key in ("kind", "preset", "arm", "seed", *fixed):
            raise ConfigError(
                f"{key} names the run and cannot be overridden; give it as an argument."
            )
    return changes


def find_differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return both values of every dotted key that differs; ``None`` for a missing one."""
    first, second = flatten(one), flatten(two)
    keys = [*first, *(key for key in second if key not in first)]
    pairs = {key: (first.get(key), second.get(key)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *groups, last = key.split(".")
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
            if not isinstance(branch, dict):
                raise ConfigError(f"{key}: {group} is also given as a value.")
        if last in branch:
            raise ConfigError(f"{key} is given both as a value and as a group of settings.")
        branch[last] = value
    return tree


def _overridden(config: Any, tree: dict[str, Any], prefix: str, known: list[str]) -> Any:
    hints = typing.get_type_hints(type(config))
    names = [field.name for field in dataclasses.fields(config)]
    changes: dict[str, Any] = {}
    for name, value in tree.items():
        key = prefix + name
        if name not in names:
            near = [other for other in known if other.rpartition(".")[2] == name]
            near = near or difflib.get_close_matches(key, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            allowed = ", ".join(prefix + name for name in names)
            raise ConfigError(f"Unknown setting {show(key)}; known settings: {allowed}.{hint}")
        current = getattr(config, name)
        if dataclasses.is_dataclass(current):
            inner = [field.name for field in dataclasses.fields(current)]
            if not isinstance(value, dict):
                raise ConfigError(
                    f"{key} is a group of settings: give one of {', '.join(inner)}, "
                    f"e.g. {key}.{inner[0]}."
                )
            changes[name] = _overridden(current, value, f"{key}.", known)
        elif isinstance(value, dict) and isinstance(current, dict):
            changes[name] = _merged(current, value, hints[name], key)
        elif isinstance(value, dict):
            raise ConfigError(f"{key} is a single value, {current!r}, not a group of settings.")
        else:
            changes[name] = _typed(hints[name], value, key)
    return dataclasses.replace(config, **changes)


def _merged(current: dict[str, Any], changes: dict[str, Any], hint: Any, where: str) -> Any:
    """Change some entries of a table, which may be tables themselves."""
    kind = typing.get_args(hint)[1] if typing.get_args(hint) else Any
    found = dict(current)
    for name, value in changes.items():
        if isinstance(value, dict) and typing.get_origin(kind) is not dict:
            raise ConfigError(f"{where}.{name} is a single value, not a group of settings.")
        if isinstance(value, dict):
            found[name] = _merged(found.get(name) or {}, value, kind, f"{where}.{name}")
        else:
            found[name] = _typed(kind, value, f"{where}.{name}")
    return found


def _keys(config: Any, prefix: str) -> Iterator[str]:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from _keys(value, f"{prefix}{field.name}.")
        elif isinstance(value, dict):
            yield from (f"{prefix}{field.name}.{name}" for name in value)
        else:
            yield prefix + field.name
