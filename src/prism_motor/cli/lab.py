"""``prism lab``: small problems of known structure, to find out when products pay."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tyro.conf import Positional

from prism_motor._checks import check_choice
from prism_motor._console import text_table
from prism_motor._ranges import Checked, Threads
from prism_motor.cli.flags import parse, parse_together, take

_USAGE = """usage: prism lab list                                   problems, arms and presets
       prism lab run FOLDER [--preset NAME] [OPTIONS]   do what is missing
       prism lab confirm FOLDER [OPTIONS]               once more with fresh seeds, once
       prism lab report FOLDER                          write its page

A finished cell is never done again: the same command continues where it stopped."""


@dataclass(frozen=True)
class LabRunOptions(Checked, section="--"):
    """Where."""

    folder: Positional[Path]
    """The laboratory's folder, new or to continue."""


@dataclass(frozen=True)
class LabConfirmOptions(Checked, section="--"):
    """What is confirmed."""

    folder: Positional[Path]
    """The laboratory's folder."""
    arms: tuple[str, ...] = ()
    """Which arms, besides the reference; default: all that were run."""
    jobs: Threads = 1
    """Number of worker processes, with one thread each."""


@dataclass(frozen=True)
class LabReportOptions(Checked, section="--"):
    """What is reported."""

    folder: Positional[Path]
    """The laboratory's folder; it may be unfinished."""
    arms: tuple[str, ...] = ()
    """Which arms map.png shows; default: all. The page has all of them."""


def lab(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Run, confirm or report a laboratory; see ``prism lab --help``.

    Args:
        arguments: Arguments after ``prism lab``.
        plugins: User modules, already loaded.
    """
    words = list(arguments)
    if not words or words[0].startswith("-"):
        print(_USAGE)
        sys.exit(0 if words and words[0] in ("-h", "--help") else 2)
    name = check_choice("command of prism lab", words.pop(0), SUBCOMMANDS)
    SUBCOMMANDS[name](words, plugins)


def show(words: list[str], plugins: Sequence[str]) -> None:
    """List problems, arms and presets."""
    from prism_motor.studies.lab.arms import ARMS
    from prism_motor.studies.lab.config import PRESETS
    from prism_motor.studies.lab.problems import PROBLEMS

    rows = [("problem", "what", "right answer", "factors", "in", "out")]
    rows += [
        (p.name, p.title, p.formula, str(p.factors), *map(str, p.shape)) for p in PROBLEMS.values()
    ]
    print(text_table(rows, numbers_from=3))
    print("\n" + text_table([("arm", "what"), *((a.name, a.label) for a in ARMS)], numbers_from=2))
    print(f"\npresets: {', '.join(PRESETS)}")


def run(words: list[str], plugins: Sequence[str]) -> None:
    """Do what is missing of a laboratory."""
    from prism_motor.studies.lab.config import PRESETS
    from prism_motor.studies.lab.runner import run_lab

    chosen = take(words, "--preset")
    preset = PRESETS[check_choice("preset", chosen[-1] if chosen else "full", PRESETS)]
    options, changes = parse_together(
        LabRunOptions,
        preset,
        words,
        prog="prism lab run",
        description=f"Do what is missing. --preset {'|'.join(PRESETS)} (full) sets the defaults.",
    )
    lists = {key: tuple(v) if isinstance(v, list) else v for key, v in changes.items()}
    try:
        run_lab(options.folder, replace(preset, **lists), plugins)
    except KeyboardInterrupt:
        print("\nStopped. The same command continues.", file=sys.stderr)
        raise
    print(f"All cells are done. Next: prism lab report {options.folder}")


def confirm(words: list[str], plugins: Sequence[str]) -> None:
    """Train the cells again with fresh data seeds, once."""
    from prism_motor.studies.lab.runner import confirm_lab

    options = parse(
        LabConfirmOptions, words, prog="prism lab confirm", description=str(confirm.__doc__)
    )
    confirm_lab(options.folder, options.arms, options.jobs, plugins)
    print(f"Confirmed. Next: prism lab report {options.folder}")


def report(words: list[str], plugins: Sequence[str]) -> None:
    """Write the page, its tables and its numbers."""
    from prism_motor.studies.lab.report import report_lab

    options = parse(
        LabReportOptions, words, prog="prism lab report", description=str(report.__doc__)
    )
    made = report_lab(options.folder, options.arms)
    print("\n".join(f"- {who}{what}" for who, what in made.findings))
    print(f"\nOpen {made.page} in a browser.")


SUBCOMMANDS = {"list": show, "run": run, "confirm": confirm, "report": report}
