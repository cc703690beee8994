"""``prism pilot``: blinded trials of policies on a robot."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from prism_motor._checks import InputError, check_choice
from prism_motor._console import text_table
from prism_motor._ranges import Checked
from prism_motor.cli.flags import parse
from prism_motor.pilots.config import PilotConfig

if TYPE_CHECKING:
    from prism_motor.pilots.plan import PilotPlan

_ROBOT = "--robot."

_USAGE = """usage: prism pilot plan PILOT --criterion TEXT --arm NAME=FOLDER --arm NAME=FOLDER
                        [--trials N] [OPTIONS] --robot.type=TYPE [--robot.SETTING=VALUE ...]
       prism pilot run PILOT [OPTIONS]     do the trials that are left
       prism pilot label PILOT --by NAME   a second, blinded look at the videos
       prism pilot report PILOT            reveal the arms and write the page

PILOT is a new folder. FOLDER is a run folder of manipulation or a LeRobot policy folder; an arm
that is given several times has several training seeds. Flags under --robot. are LeRobot's own."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions(PilotConfig):
    """What is planned."""

    pilot: Positional[Path]
    """The pilot's new folder."""
    arm: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """NAME=FOLDER, once for every arm; several times for one arm: its training seeds."""


@dataclass(frozen=True)
class PilotRunOptions(Checked, section="--"):
    """Who is there, and what listens."""

    pilot: Positional[Path]
    """The pilot's folder."""
    by: str = "operator"
    """Who labels the trials."""
    clicks: Path | None = None
    """Input device of the mouse on the table, e.g. /dev/input/event5: its clicks are a second
    column, not the label."""


@dataclass(frozen=True)
class LabelOptions(Checked, section="--"):
    """Who looks."""

    pilot: Positional[Path]
    """The pilot's folder."""
    by: str
    """Who looks: somebody other than the one who labelled first."""


@dataclass(frozen=True)
class PilotReportOptions(Checked, section="--"):
    """What is reported."""

    pilot: Positional[Path]
    """The pilot's folder."""
    unfinished: bool = False
    """Reveal the arms although trials are left; none can follow."""


def pilot(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Plan, do, label or report trials; see ``prism pilot --help``.

    Args:
        arguments: Arguments after ``prism pilot``.
        plugins: User modules, already loaded, which become part of the plan.
    """
    words = list(arguments)
    if not words or words[0].startswith("-"):
        print(_USAGE)
        sys.exit(0 if words and words[0] in ("-h", "--help") else 2)
    name = check_choice("command of prism pilot", words.pop(0), SUBCOMMANDS)
    kind, function = SUBCOMMANDS[name]
    robot = [word for word in words if word.startswith(_ROBOT)] if name == "plan" else []
    if bare := [word for word in robot if "=" not in word]:
        raise InputError(f"Flags of a robot need an equals sign: {bare[0]}=VALUE.")
    rest = [word for word in words if word not in robot]
    description = str(function.__doc__).partition("\n")[0]
    options = parse(kind, rest, prog=f"prism pilot {name}", description=description)
    function(options, robot, plugins)


def plan(options: PlanOptions, robot: Sequence[str], plugins: Sequence[str]) -> None:
    """Check policies and robot, draw the order, show the power, and seal the plan."""
    from prism_motor.pilots.planning import make_plan

    settings = {one.name: getattr(options, one.name) for one in fields(PilotConfig)}
    made = make_plan(options.pilot, PilotConfig(**settings), options.arm, robot, plugins)
    print(describe_power(made))
    print(
        f"Sealed: {len(made.order)} trials at {len(made.poses)} start poses in {options.pilot}. "
        "Nothing of it can be changed any more."
    )
    print(f"Next: prism pilot run {options.pilot}")


def describe_power(plan: PilotPlan) -> str:
    """Return the power of a plan as a table."""
    from prism_motor.pilots.tables import TESTS

    rows = [("true success rates", "power")]
    rows += [(f"{one.rates[0]:g} and {one.rates[1]:g}", f"{one.power:.2f}") for one in plan.power]
    title = (
        f"Chance that {TESTS[plan.config.test]} (p < 0.05) finds a difference with "
        f"{plan.config.trials} trials of each arm:"
    )
    return f"{title}\n{text_table(rows)}"


def run(options: PilotRunOptions, robot: Sequence[str], plugins: Sequence[str]) -> None:
    """Do the trials that are left, blinded, each one on disk at once."""
    from prism_motor.pilots.runner import run_pilot

    try:
        done = run_pilot(options.pilot, by=options.by, clicks=options.clicks)
    except KeyboardInterrupt:
        print(f"\nStopped. Continue with: prism pilot run {options.pilot}", file=sys.stderr)
        raise
    print(f"All {done.total} trials have a label.")
    print(f"Next: prism pilot label {options.pilot} --by NAME, then prism pilot report")


def label(options: LabelOptions, robot: Sequence[str], plugins: Sequence[str]) -> None:
    """Look at the videos a second time, in another order, without the first labels."""
    from prism_motor.pilots.keys import Keys
    from prism_motor.pilots.labelling import look_again

    with Keys() as keys:
        look_again(options.pilot, options.by, keys)


def report(options: PilotReportOptions, robot: Sequence[str], plugins: Sequence[str]) -> None:
    """Reveal the arms and write the page, its tables and its numbers."""
    from prism_motor.pilots.report import report_pilot
    from prism_motor.report.markdown import terminal_table

    made = report_pilot(options.pilot, unfinished=options.unfinished)
    print(terminal_table(made.tables[0]))
    print("\n".join(f"- {who}{what}" for who, what in made.findings))
    print(made.page)


SUBCOMMANDS = {
    "plan": (PlanOptions, plan),
    "run": (PilotRunOptions, run),
    "label": (LabelOptions, label),
    "report": (PilotReportOptions, report),
}
