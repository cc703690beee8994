"""Flags from frozen dataclasses: one per field, with the field's docstring as help."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar

from prism_motor._checks import InputError
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

    return tyro.cli(kind, args=list(arguments), prog=prog, description=description)


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
    parsed: Any = parse(
        combine(options, settings, hidden), arguments, prog=prog, description=description
    )
    before, after = (flatten(to_dict(one)) for one in (_shown(settings, hidden), parsed.settings))
    return parsed.options, {key: value for key, value in after.items() if before.get(key) != value}


def combine(options: type[Any], settings: Any, hidden: Collection[str] = ()) -> type[Any]:
    """Return a dataclass of a command's options and settings, for parsing."""
    import tyro

    flat, shown = tyro.conf.arg(name=""), _shown(settings, hidden)
    return dataclasses.make_dataclass(
        "Options",
        [
            ("options", Annotated[options, flat]),
            ("settings", Annotated[type(shown), flat], dataclasses.field(default=shown)),
        ],
        frozen=True,
    )


def _shown(settings: Any, hidden: Collection[str]) -> Any:
    """Return the settings without hidden fields."""
    kind = _without(type(settings), hidden)
    names = [field.name for field in dataclasses.fields(kind)]
    return kind(**{name: getattr(settings, name) for name in names})


@cache
def _without(kind: type[Any], hidden: Collection[str]) -> type[Any]:
    """Return a dataclass without some of its fields, for parsing."""
    import tyro

    docs, hints = field_docs(kind), inspect.get_annotations(kind, eval_str=True)
    for base in kind.__mro__[1:]:
        hints = {**inspect.get_annotations(base, eval_str=True), **hints}
    made = [
        (
            field.name,
            Annotated[hints[field.name], tyro.conf.arg(help=docs.get(field.name, ""))],
            dataclasses.field(default=dataclasses.MISSING),
        )
        for field in dataclasses.fields(kind)
        if field.name not in hidden
    ]
    return dataclasses.make_dataclass(kind.__name__, made, frozen=True, kw_only=True)


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
