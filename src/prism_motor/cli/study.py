"""Studies as commands: ``prism probe``, ``prism explain`` and all others, from one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prism_motor._checks import InputError
from prism_motor._ranges import Checked, Step, check_ranges
from prism_motor.analysis.study import choose_study, run_study
from prism_motor.cli.flags import parse_together


@dataclass(frozen=True)
class StudyOptions(Checked, section="--"):
    """What to study."""

    out: Path | None = None
    """Output folder; default: FIRST RUN/analysis/NAME."""
    checkpoint: Step | None = None
    """Which checkpoint; default: the newest."""


def study(name: str, arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Run the study of a command; the runs, which come first, determine its domain.

    Args:
        name: Name of the command.
        arguments: Arguments after it.
        plugins: Modules of the user, loaded already.
    """
    flags = next((i for i, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    runs = [Path(word) for word in arguments[:flags]]
    chosen = choose_study(name, runs)
    config = chosen.config()
    few = "RUN" if chosen.single else "RUN [RUN ...]"
    options, changes = parse_together(
        StudyOptions,
        config,
        arguments[flags:],
        prog=f"prism {name} {few}",
        description=chosen.help,
    )
    if not runs:
        raise InputError(f"Give at least one run folder: prism {name} {few}.")
    changes = {key: tuple(v) if isinstance(v, list) else v for key, v in changes.items()}
    settings = replace(config, **changes)
    check_ranges(settings)  # a user's own dataclass may not be a checked one
    run_study(chosen, runs, settings, out=options.out, checkpoint=options.checkpoint)
