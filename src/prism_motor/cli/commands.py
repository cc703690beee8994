"""The table of subcommands of ``prism``: where each one is, and what it is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from prism_motor._registry import resolve


@dataclass(frozen=True)
class Command:
    """A subcommand."""

    group: str
    """Heading under which the help lists it."""
    help: str
    """What it does, in one line."""
    place: str | Callable[[Sequence[str], Sequence[str]], None]
    """The function, or ``module:function``."""
    raw: bool = False
    """Whether the function gets unparsed arguments, because its flags depend on others."""

    def call(self, name: str, words: Sequence[str], plugins: Sequence[str]) -> None:
        """Run the command."""
        from prism_motor.cli.flags import call

        place = self.place
        function = resolve(f"prism_motor.cli.{place}") if isinstance(place, str) else place
        if self.raw:
            function(words, plugins)
        else:
            call(function, words, prog=f"prism {name}")


_TRY, _TRAIN, _EVALUATE, _LOOK, _ROBOT, _ABOUT = GROUPS = (
    "Try it",
    "Train",
    "Evaluate and report",
    "Analyse what was learned",
    "Robots, tasks and data",
    "About",
)

COMMANDS: dict[str, Command] = {
    "demo": Command(_TRY, "Train PRISM and an MLP of the same size to walk.", "showcase:demo"),
    "play": Command(_TRY, "Watch trained policies live in the browser.", "watch:play"),
    "video": Command(_TRY, "Record videos of a trained policy.", "video:video", raw=True),
    "train": Command(_TRAIN, "Train a policy.", "train:train", raw=True),
    "eval": Command(_EVALUATE, "Evaluate a trained policy.", "evaluate:evaluate", raw=True),
    "campaign": Command(
        _TRAIN, "Run a whole comparison from one file.", "campaign:campaign", raw=True
    ),
    "estimate": Command(
        _TRAIN, "Estimate the hours and memory of a run.", "estimate:estimate", raw=True
    ),
    "report": Command(_EVALUATE, "Write a page about all runs in a folder.", "runs:report"),
    "archive": Command(_EVALUATE, "Copy runs without weights, to check results.", "runs:archive"),
    "verify": Command(_EVALUATE, "Check that runs are as they were written.", "runs:verify"),
    "replay": Command(_TRAIN, "Repeat an update that diverged.", "train:replay"),
    "export": Command(_ROBOT, "Export a policy for a robot or for LeRobot.", "runs:export"),
    "sim2sim": Command(_ROBOT, "Run an exported policy in MuJoCo.", "watch:sim2sim"),
    "pilot": Command(_ROBOT, "Try policies on a robot in blinded trials.", "pilot:pilot", raw=True),
    "record": Command(_ROBOT, "Record demonstrations of a scripted expert.", "demos:demos"),
    "teleop": Command(_ROBOT, "Record your own demonstrations in the browser.", "teleop:teleop"),
    "motions": Command(_ROBOT, "Import, make and show motion clips.", "motions:motions", raw=True),
    "libero": Command(_ROBOT, "Set up LIBERO on this machine.", "libero:libero", raw=True),
    "so101": Command(_ROBOT, "Emulate an SO-101 for LeRobot.", "so101:so101", raw=True),
    "physics": Command(_LOOK, "Learn physics from first-order signals.", "showcase:physics"),
    "lab": Command(_LOOK, "Find out on small problems when products pay.", "lab:lab", raw=True),
    "info": Command(_ABOUT, "Print versions and devices, for bug reports.", "about:info"),
    "doctor": Command(_ABOUT, "Check physics on a GPU on this machine.", "doctor:doctor"),
    "params": Command(_ABOUT, "Compare parameter counts with the paper's.", "about:params"),
}
"""Subcommands by name."""


def all_commands() -> dict[str, Command]:
    """Return all subcommands: those of the table, and one per study, including custom ones."""
    from prism_motor.analysis.study import STUDIES
    from prism_motor.cli.study import study

    studies = {
        name: Command(_LOOK, entry.summary, partial(study, name), raw=True)
        for name, entry in STUDIES.items()
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
    for group in GROUPS:
        lines += ["", f"{group}:"]
        lines += [
            f"  {name:<10} {command.help}"
            for name, command in all_commands().items()
            if command.group == group
        ]
    lines += [
        "",
        "prism COMMAND --help shows the options of a command; --plugin MODULE, with any command,",
        "loads your own module first; prism --version prints the version; prism",
        "--tyro-print-completion bash (zsh, fish) prints a script that completes all this.",
    ]
    return "\n".join(lines)
