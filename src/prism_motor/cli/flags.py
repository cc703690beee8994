"""Flags from frozen dataclasses: one per field, with the field's docstring as help."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

from prism_motor._checks import InputError
from prism_motor._ranges import check_arguments, describe_range, field_hints
from prism_motor.runs import to_dict
from prism_motor.runs.configs import flatten

T = TypeVar("T")


def parse(kind: type[T], arguments: Sequence[str], *, prog: str, description: str) -> T:
    """Parse arguments into a dataclass.

    Args:
        kind: The dataclass.
        arguments: Arguments after ``prog``.
        prog: The command.
        description: What it does.
    """
    import tyro

    parsed = tyro.cli(_mirror(kind), args=list(arguments), prog=prog, description=description)
    return _restore(kind, parsed)


def call(function: Callable[..., Any], arguments: Sequence[str], *, prog: str) -> None:
    """Parse arguments by the signature of a function, check them and call it."""
    import tyro

    tyro.cli(with_ranges(function), args=list(arguments), prog=prog)


def with_ranges(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that checks its arguments, and whose help shows their ranges."""
    hints = typing.get_type_hints(function, include_extras=True)
    settings = {name: typing.get_args(hint)[0] for name, hint in hints.items() if _holds(hint)}

    @wraps(function)
    def checked(*values: Any, **named: Any) -> Any:
        given = inspect.signature(function).bind(*values, **named).arguments
        given |= {name: _restore(kind, given[name]) for name, kind in settings.items()}
        check_arguments(function, given)
        return function(**given)

    shown = {
        name: Annotated[(_mirror(settings[name]), *typing.get_args(hint)[1:])]  # type: ignore[misc]
        if name in settings
        else _explain(hint)
        for name, hint in hints.items()
    }
    signature = inspect.signature(function)
    parameters = [
        one.replace(annotation=shown.get(one.name, one.annotation))
        for one in signature.parameters.values()
    ]
    checked.__doc__ = _in_lines(plain_text(function.__doc__ or ""))
    del checked.__wrapped__  # type: ignore[attr-defined]  # whose annotations would be read
    checked.__annotations__ = shown
    checked.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return checked


def _holds(hint: Any) -> bool:
    """Return whether an annotated argument is a dataclass, whose fields are flags."""
    return typing.get_origin(hint) is Annotated and dataclasses.is_dataclass(
        typing.get_args(hint)[0]
    )


def parse_together(
    options: type[Any],
    settings: Any,
    arguments: Sequence[str],
    *,
    prog: str,
    description: str,
    hidden: Collection[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """Parse the options of a command together with settings.

    Args:
        options: Dataclass of the command's options, which come first in the help.
        settings: A config; its values are the defaults.
        arguments: The arguments.
        prog: The command.
        description: What it does.
        hidden: Fields of the config that are not flags.

    Returns:
        The options, and the settings that differ from their defaults by dotted key.
    """
    import tyro

    parsed: Any = tyro.cli(
        combine(options, settings, hidden),
        args=list(arguments),
        prog=prog,
        description=description,
    )
    before, after = (flatten(to_dict(one)) for one in (_shown(settings, hidden), parsed.settings))
    changes = {key: value for key, value in after.items() if before.get(key) != value}
    return _restore(options, parsed.options), changes


def combine(options: type[Any], settings: Any, hidden: Collection[str] = ()) -> type[Any]:
    """Return a dataclass of a command's options and settings, for parsing."""
    import tyro

    flat, shown = tyro.conf.arg(name=""), _shown(settings, hidden)
    return dataclasses.make_dataclass(
        "Options",
        [
            ("options", Annotated[_mirror(options), flat]),
            ("settings", Annotated[type(shown), flat], dataclasses.field(default=shown)),
        ],
        frozen=True,
    )


def _shown(settings: Any, hidden: Collection[str] = ()) -> Any:
    """Return the settings without hidden fields, for parsing."""
    names = [one.name for one in dataclasses.fields(settings) if one.name not in hidden]
    values = {name: getattr(settings, name) for name in names}
    values = {
        name: _shown(value) if dataclasses.is_dataclass(value) else value
        for name, value in values.items()
    }
    sections = {name: type(v) for name, v in values.items() if dataclasses.is_dataclass(v)}
    return _mirror(type(settings), hidden, sections)(**values)


def _mirror(
    kind: type[Any], hidden: Collection[str] = (), sections: Mapping[str, type[Any]] | None = None
) -> type[Any]:
    """Return a dataclass with the fields of another, for parsing: its help shows their ranges.

    It checks nothing, so that a value out of its range is reported by :func:`_restore` and by
    what reads the settings, in our words.

    Args:
        kind: The dataclass.
        hidden: Fields to leave out.
        sections: Types of nested settings, for their mirrors.
    """
    docs, hints = field_docs(kind), {**field_hints(kind), **(sections or {})}
    made = [
        (
            one.name,
            _explain(hints[one.name], docs.get(one.name, "")),
            dataclasses.field(default=one.default, default_factory=one.default_factory),  # type: ignore[call-overload]
        )
        for one in dataclasses.fields(kind)
        if one.name not in hidden
    ]
    return dataclasses.make_dataclass(kind.__name__, made, frozen=True, kw_only=True)


def _restore(kind: type[T], mirrored: Any) -> T:
    """Return what was parsed as the dataclass it mirrors, which checks it."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: getattr(mirrored, name) for name in names})


def _explain(hint: Any, doc: str | None = None) -> Any:
    """Return an annotation for tyro: the help is the given one and shows range and default."""
    import tyro

    allowed = describe_range(hint)
    if dataclasses.is_dataclass(hint) or (_is_group(hint) and not doc):
        return hint if doc is None else Annotated[hint, tyro.conf.arg(help=plain_text(doc))]
    if _is_group(hint):
        limits = f" (each {allowed})" if allowed else ""
        return Annotated[hint, tyro.conf.arg(help=plain_text(doc or "") + limits)]

    def behaviour(default: str) -> str:
        # What an empty default stands for is said by the help itself.
        told = "" if default in ("None", "", "''") else f"default: {default}"
        parts = [part for part in (allowed, told) if part]
        return f"({'; '.join(parts)})" if parts else ""

    shown = tyro.conf.arg(
        help=None if doc is None else plain_text(doc),
        help_behavior_hint=behaviour,
        metavar=_metavar(hint),
    )
    spec = _numbers_or_words(hint)
    return Annotated[(hint, shown) if spec is None else (hint, shown, spec)]  # type: ignore[misc]


def _numbers_or_words(hint: Any) -> Any:
    """Return how to read several numbers or a word, whose errors tyro would say in types."""
    import tyro

    kinds = [_unmarked(kind) for kind in typing.get_args(_unmarked(hint))]
    numbers = [kind for kind in kinds if typing.get_origin(kind) is tuple]
    words = [
        w for kind in kinds if typing.get_origin(kind) is typing.Literal for w in kind.__args__
    ]
    if len(numbers) != 1 or not words or set(typing.get_args(numbers[0])) != {float}:
        return None
    size = len(typing.get_args(numbers[0]))

    def read(given: list[str]) -> tuple[float, ...] | str:
        if len(given) == 1 and given[0] in words:
            return given[0]
        try:
            values = tuple(map(float, given))
        except ValueError:
            values = ()
        if len(values) != size:
            allowed = f"{size} numbers, or {' or '.join(words)}"
            raise ValueError(f"give {allowed}, not: {' '.join(given) or 'nothing'}")
        return values

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar=f"{{{' '.join(['FLOAT'] * size)}}}|{{{','.join(words)}}}",
        instance_from_str=read,
        is_instance=lambda value: value is None or isinstance(value, tuple | list | str),
        str_from_instance=lambda value: (
            [str(value)] if value is None or isinstance(value, str) else list(map(str, value))
        ),
    )


def _metavar(hint: Any) -> str | None:
    """Return the name of an optional value or of a list, without None, in one pair of brackets."""
    plain = _unmarked(hint)
    kinds = [_unmarked(kind) for kind in typing.get_args(plain)]
    if typing.get_origin(plain) is tuple and kinds[1:] == [Ellipsis]:
        name = _value_name(kinds[0])
        return name and f"[{name} ...]"
    if type(None) not in kinds or len(kinds) != 2:
        return None
    (kind,) = (one for one in kinds if one is not type(None))
    return _metavar(kind) if typing.get_origin(kind) is tuple else _value_name(kind)


def _value_name(kind: Any) -> str | None:
    if typing.get_origin(kind) is typing.Literal:
        return "{" + ",".join(map(str, typing.get_args(kind))) + "}"
    return {Path: "PATH", str: "STR", int: "INT", float: "FLOAT"}.get(kind)


def _unmarked(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def plain_text(text: str) -> str:
    """Return a docstring for the terminal: without roles and quotes of its markup."""
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("``", "")


def _is_group(hint: Any) -> bool:
    """Return whether a value becomes several flags: a table, or a list of lists."""
    plain = _unmarked(hint)
    return typing.get_origin(plain) is dict or (
        typing.get_origin(plain) is tuple and typing.get_origin(typing.get_args(plain)[0]) is tuple
    )


def _in_lines(docstring: str) -> str:
    """Return a docstring with one line per argument; tyro would keep its line breaks."""
    return re.sub(r"\n {8,}(?=\S)", " ", inspect.cleandoc(docstring))


@cache
def field_docs(kind: type[Any]) -> dict[str, str]:
    """Return the docstrings under the fields of a dataclass, including its bases."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except (OSError, TypeError):  # defined at a prompt
            continue
        assert isinstance(body, ast.ClassDef)
        for field, doc in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(doc, ast.Expr)
                and isinstance(doc.value, ast.Constant)
            ):
                found[field.target.id] = " ".join(str(doc.value.value).split())
    return found


def rename(arguments: Sequence[str], names: Mapping[str, str], *, note: str = "") -> list[str]:
    """Rename flags.

    Args:
        arguments: The arguments.
        names: New names by old ones.
        note: Message to print for each, with ``{old}`` and ``{new}``; empty for none.
    """
    import sys

    renamed = []
    for word in arguments:
        flag, equals, value = word.partition("=")
        flag = "--" + flag[2:].replace("_", "-") if flag.startswith("--") else flag
        if flag in names:
            if note:
                print(note.format(old=flag, new=names[flag]), file=sys.stderr)
            word = names[flag] + equals + value
        renamed.append(word)
    return renamed


def take(arguments: list[str], flag: str) -> list[str]:
    """Remove all occurrences of a flag and return its values."""
    values = []
    while True:
        place = next(
            (i for i, w in enumerate(arguments) if w == flag or w.startswith(f"{flag}=")), None
        )
        if place is None:
            return values
        word = arguments.pop(place)
        if "=" in word:
            values.append(word.partition("=")[2])
        elif place < len(arguments):
            values.append(arguments.pop(place))
        else:
            raise InputError(f"{flag} needs a value.")


def peek(arguments: Sequence[str], flag: str, default: str | None = None) -> str | None:
    """Return the value of a flag without removing it."""
    values = take(list(arguments), flag)
    return values[-1] if values else default
