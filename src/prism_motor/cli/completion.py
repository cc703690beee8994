"""Shell completion: ``prism --tyro-print-completion bash`` (or ``zsh``, ``fish``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Union, get_type_hints

from prism_motor._checks import InputError, check_choice
from prism_motor._registry import resolve
from prism_motor.cli.commands import COMMANDS, all_commands
from prism_motor.cli.evaluate import EvalOptions
from prism_motor.cli.flags import combine, with_ranges
from prism_motor.cli.train import HIDDEN, TrainOptions
from prism_motor.cli.video import FilmOptions
from prism_motor.domains import DOMAINS, Domain

_WORDS = {"--tyro-print-completion": 2, "--tyro-write-completion": 3}
"""How many words a request for a script has."""
_WITH_SUBCOMMANDS = ("campaign", "lab", "pilot", "motions", "libero")
"""Commands whose first word is one of several, by the module they are in."""


def complete(words: Sequence[str]) -> None:
    """Print or write a completion script for all of ``prism``.

    Most commands are completed directly. The flags of ``train``, ``eval`` and ``video`` depend on
    what they are given; the script includes those of every domain, with its default preset. Of
    commands that have their own, it includes these, and the flags of some.

    Args:
        words: ``--tyro-print-completion SHELL``, or ``--tyro-write-completion SHELL FILE``.
    """
    import tyro

    if len(words) != _WORDS.get(words[0]):
        raise InputError(
            f"{words[0]} cannot be used like this: write --tyro-print-completion SHELL, or "
            "--tyro-write-completion SHELL FILE, and nothing else."
        )
    check_choice("shell", words[1], ("bash", "zsh", "fish"))
    commands: dict[str, Callable[..., Any]] = {
        name: with_ranges(resolve(f"prism_motor.cli.{command.place}"))
        for name, command in COMMANDS.items()
        if not command.raw
    }
    domains = {name: DOMAINS[name] for name in DOMAINS}
    commands["train"] = _train(domains)
    of_runs = {
        "eval": (EvalOptions, [domain.evaluation for domain in domains.values()]),
        "video": (FilmOptions, [domain.film for domain in domains.values() if domain.film]),
    }
    commands |= {name: _of_a_run(name, *kinds) for name, kinds in of_runs.items()}
    commands |= {name: _with_subcommands(name) for name in _WITH_SUBCOMMANDS}
    commands |= {
        name: _named(entry.help) for name, entry in all_commands().items() if name not in commands
    }
    tyro.extras.subcommand_cli_from_dict(
        commands, prog="prism", args=list(words), config=(tyro.conf.OmitSubcommandPrefixes,)
    )


def _train(domains: Mapping[str, Domain]) -> Callable[..., Any]:
    """Return a function that takes the name of a domain and its flags."""
    import tyro

    options = [
        Annotated[
            combine(TrainOptions, domain.flags(domain.default_preset, "prism"), HIDDEN),
            tyro.conf.subcommand(name),
        ]
        for name, domain in domains.items()
    ]

    def train(domain: Any) -> None:
        """Train a policy."""

    train.__annotations__ = {"domain": Union[tuple(options)], "return": None}  # noqa: UP007
    return train


def _with_subcommands(name: str) -> Callable[..., Any]:
    """Return a function that takes the name of a subcommand, and its flags if they are known."""
    import tyro

    try:
        found = resolve(f"prism_motor.cli.{name}:SUBCOMMANDS")
    except ImportError:  # of an extra that is not installed
        return _named(COMMANDS[name].help)
    kinds = [
        Annotated[
            entry[0] if isinstance(entry, tuple) else dataclasses.make_dataclass(one, []),
            tyro.conf.subcommand(one),
        ]
        for one, entry in found.items()
    ]

    def command(chosen: Any) -> None: ...

    command.__doc__ = COMMANDS[name].help
    command.__annotations__ = {"chosen": Union[tuple(kinds)], "return": None}  # noqa: UP007
    return command


def _named(help_text: str) -> Callable[..., Any]:
    """Return a function without arguments, of which the name is completed."""

    def command() -> None: ...

    command.__doc__ = help_text
    return command


def _of_a_run(name: str, options: type[Any], settings: Sequence[type[Any]]) -> Callable[..., Any]:
    """Return a function that takes a run and the flags of all domains."""
    import tyro

    found: dict[str, Any] = {}
    for kind in (options, *settings):
        hints = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            flag = (field.name, hints[field.name], dataclasses.field(default=field.default))
            found.setdefault(field.name, flag)
    run = ("run", tyro.conf.Positional[Path])
    return dataclasses.make_dataclass(name.capitalize(), [run, *found.values()], kw_only=True)
