"""The subcommands of ``prism`` as a table: where each one is, and what it is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prism_motor._registry import resolve


@dataclass(frozen=True)
class Command:
    """A subcommand."""

    group: str
    """Heading under which the help lists it."""
    help: str
    """What it does, in a line."""
    place: str
    """``module:function``."""
    raw: bool = False
    """Whether the function takes what was typed as it is: its flags depend on other flags."""

    def call(self, name: str, words: Sequence[str], plugins: Sequence[str]) -> None:
        """Run the command."""
        import tyro

        function = resolve(f"prism_motor.cli.{self.place}")
        if self.group == _LOOK and self.raw:
            function(name, words)
        elif self.raw:
            function(words, plugins)
        else:
            tyro.cli(function, args=list(words), prog=f"prism {name}")


_TRY, _TRAIN, _LOOK, _ROBOT, _ABOUT = (
    "Try it",
    "Train and evaluate",
    "Find out what was learned",
    "Robots, tasks and data",
    "About",
)

COMMANDS: dict[str, Command] = {
    "demo": Command(
        _TRY, "Train PRISM and an equal MLP to walk; ends with a page.", "showcase:demo"
    ),
    "play": Command(_TRY, "Watch trained policies walk, live in the browser.", "watch:play"),
    "video": Command(_TRY, "Film a trained policy.", "watch:video"),
    "train": Command(_TRAIN, "Train a policy.", "train:train", raw=True),
    "eval": Command(_TRAIN, "Evaluate a trained policy.", "evaluate:evaluate", raw=True),
    "campaign": Command(_TRAIN, "Many runs from one file.", "campaign:campaign", raw=True),
    "report": Command(_TRAIN, "One page about all runs in a folder.", "runs:report"),
    "archive": Command(_TRAIN, "Small records of runs, without weights.", "runs:archive"),
    "replay": Command(_TRAIN, "Repeat an update that diverged.", "train:replay"),
    "export": Command(_ROBOT, "A policy as files for a robot or for LeRobot.", "runs:export"),
    "sim2sim": Command(_ROBOT, "Run an exported policy in MuJoCo.", "watch:sim2sim"),
    "record": Command(_ROBOT, "Record demonstrations of a scripted expert.", "demos:demos"),
    "libero": Command(_ROBOT, "Get LIBERO ready on this machine.", "libero:libero", raw=True),
    "physics": Command(_LOOK, "Learn physics from first-order signals.", "showcase:physics"),
    "info": Command(_ABOUT, "Versions and devices, for bug reports.", "about:info"),
    "params": Command(_ABOUT, "Parameter counts against the paper's.", "about:params"),
}
"""Subcommands by name."""


def all_commands() -> dict[str, Command]:
    """Return all subcommands: those of the table, and one per study, a user's among them."""
    from prism_motor.analysis.study import STUDIES

    studies = {
        name: Command(_LOOK, study.summary, "study:study", raw=True)
        for name, study in STUDIES.items()
    }
    return {**COMMANDS, **studies}


RENAMED = {"keep": "archive", "demos": "record"}
"""Former names of subcommands."""


def describe() -> str:
    """Return the help of ``prism``: the subcommands by group."""
    lines = [
        "usage: prism COMMAND [OPTIONS]",
        "",
        "Learned products of what a robot senses, for any robot policy.",
    ]
    for group in (_TRY, _TRAIN, _LOOK, _ROBOT, _ABOUT):
        lines += ["", f"{group}:"]
        lines += [
            f"  {name:<10} {command.help}"
            for name, command in all_commands().items()
            if command.group == group
        ]
    lines += [
        "",
        "prism COMMAND --help shows the options of a command; --plugin MODULE, with any command,",
        "loads a module of yours first; prism --version prints the version.",
    ]
    return "\n".join(lines)
