"""``prism campaign``: many runs from one file, resumed where they stopped."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional

from prism_motor._checks import InputError, check_choice
from prism_motor._console import available_cores, count
from prism_motor._ranges import Checked, Threads, between
from prism_motor.cli.flags import parse

if TYPE_CHECKING:
    from prism_motor.campaigns.config import Campaign

_USAGE = """usage: prism campaign run FILE [OPTIONS]      run what is missing
       prism campaign status FILE [OPTIONS]   show its progress
       prism campaign report FILE [OPTIONS]   write its page

FILE is a TOML file, the folder of a campaign, or a campaign shipped with prism:
{names}."""


@dataclass(frozen=True)
class CampaignOptions(Checked, section="--"):
    """Which campaign."""

    file: Positional[str]
    """A TOML file, the name of a campaign shipped with prism, or a campaign's folder."""
    preset: str | None = None
    """Preset to use instead of the file's."""
    override: tuple[str, ...] = ()
    """Settings of all runs that differ from the file's: KEY=VALUE, e.g. demos=HuggingFaceVLA/libero
    or updates=500."""
    untuned: bool = False
    """Leave the tuning out: every arm has the preset's settings, as in the paper."""
    out: Path | None = None
    """The campaign's folder; default: campaigns/NAME-PRESET, or campaigns/NAME-PRESET-untuned with
    --untuned."""


@dataclass(frozen=True)
class RunOptions(CampaignOptions):
    """How to run a campaign."""

    jobs: Threads | None = None
    """Number of jobs at a time; default: the cores of this machine, with one thread each, or the
    CPUs of the Ray cluster, or 32 in Slurm's queue."""
    on: str = "local"
    """Where jobs run: local, ray (the cluster of this machine, else a new one), ray://HOST:PORT or
    slurm. Other machines need the campaign's folder and the same versions."""
    gpus: Annotated[float, between(0, 64)] | None = None
    """GPUs per job with --on ray, fractions allowed, or slurm; default: 1 for jobs on cuda."""
    slurm: tuple[str, ...] = ()
    """Parameters of Slurm jobs as for sbatch: KEY=VALUE, e.g. partition=gpu time=240."""
    until: str | None = None
    """Start no new job after this time, e.g. 45m or 1h30m."""
    reuse: tuple[Path, ...] = ()
    """Folders of other campaigns, whose runs are copied if all settings are the same."""


@dataclass(frozen=True)
class StatusOptions(CampaignOptions):
    """How the time left is estimated."""

    jobs: Threads | None = None
    """Number of parallel jobs to assume; default: the number of cores."""


@dataclass(frozen=True)
class ReportOptions(CampaignOptions):
    """What the page compares."""

    reference: str | None = None
    """Arm that the others are compared with; default: mlp-matched, else the first one."""


def campaign(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Run, watch or report a campaign; see ``prism campaign --help``.

    Args:
        arguments: Arguments after ``prism campaign``.
        plugins: User modules, which become part of the runs' settings.
    """
    from prism_motor.campaigns.files import library

    words = list(arguments)
    if not words or words[0].startswith("-"):
        names = textwrap.fill(", ".join(library()), 98, break_on_hyphens=False)
        print(_USAGE.format(names=names))
        sys.exit(0 if words and words[0] in ("-h", "--help") else 2)
    name = words.pop(0)
    kind, function = SUBCOMMANDS[check_choice("command of prism campaign", name, SUBCOMMANDS)]
    description = str(function.__doc__).partition("\n")[0]
    options = parse(kind, words, prog=f"prism campaign {name}", description=description)
    function(options, plugins)


def run(options: RunOptions, plugins: Sequence[str] = ()) -> None:
    """Run what is missing of a campaign; interrupted runs continue, finished ones stay."""
    from prism_motor.campaigns.places import choose_place
    from prism_motor.campaigns.runner import Runner

    seconds = None if options.until is None else parse_duration(options.until)
    found, folder = find_campaign_of(options, plugins)
    if options.on != "local":  # other machines start elsewhere
        folder = folder.resolve()
    place = choose_place(
        options.on, folder, gpus=options.gpus, slurm=_read_parameters(options.slurm)
    )
    runner = Runner(
        found, folder, jobs=options.jobs, place=place, until=seconds, reuse=options.reuse
    )
    again = shlex.join(["prism", "campaign", "run", str(folder), *_repeat(options)])
    try:
        outcome = runner.run()
    except KeyboardInterrupt:
        print(f"Stopped. Continue with: {again}", file=sys.stderr)
        raise
    print(f"{outcome.done} of {count(outcome.total, 'run')} done.")
    if outcome.done == outcome.total:
        print(f"Next: prism campaign report {folder}")
        return
    for name, why in outcome.failures.items():
        print(f"{name}: {why}", file=sys.stderr)
    print(f"Continue with: {again}", file=sys.stderr)
    if outcome.failures:
        sys.exit(1 if outcome.bug else 2)


def _repeat(options: RunOptions) -> list[str]:
    """Return the flags with which a campaign goes on where it was; its folder has the rest."""
    words = [] if options.on == "local" else ["--on", options.on]
    words += [] if options.jobs is None else ["--jobs", str(options.jobs)]
    words += [] if options.gpus is None else ["--gpus", f"{options.gpus:g}"]
    return words + (["--slurm", *options.slurm] if options.slurm else [])


def status(options: StatusOptions, plugins: Sequence[str] = ()) -> None:
    """Show the progress of a campaign: arms, seeds, evaluations, tuning, time left."""
    from prism_motor.campaigns.status import describe_status

    found, folder = find_campaign_of(options, plugins)
    print(describe_status(found, folder, options.jobs or available_cores()))


def report(options: ReportOptions, plugins: Sequence[str] = ()) -> None:
    """Write the page of a campaign: tables, curves, tuning, and what is still missing."""
    from prism_motor.campaigns.files import report_campaign

    found, folder = find_campaign_of(options, plugins)
    words = ["prism", "campaign", "report", str(folder)]
    words += ["--reference", options.reference] if options.reference else []
    made = report_campaign(found, folder, options.reference, command=shlex.join(words))
    print(made.summary)
    for chapter in made.chapters:
        if chapter.findings:
            print(chapter.title)
            print("\n".join(f"- {subject}{finding}" for subject, finding in chapter.findings))
    if made.problems:
        verb = "is missing or was" if len(made.problems) == 1 else "are missing or were"
        print(f"{count(len(made.problems), 'thing')} {verb} left out; the page lists them.")
    print(made.page)


SUBCOMMANDS = {
    "run": (RunOptions, run),
    "status": (StatusOptions, status),
    "report": (ReportOptions, report),
}


def find_campaign_of(options: CampaignOptions, plugins: Sequence[str]) -> tuple[Campaign, Path]:
    """Return the campaign that was asked for, and its folder."""
    from prism_motor.campaigns.files import find_campaign, read_overrides
    from prism_motor.runs.configs import flatten

    found, folder = find_campaign(options.file, options.preset)
    if options.override:
        changes = {**flatten(found.overrides), **read_overrides(options.override)}
        found = replace(found, overrides=changes)
    found = replace(found, plugins=tuple(dict.fromkeys((*found.plugins, *plugins))))
    default = Path("campaigns") / f"{found.name}-{found.preset}"
    if options.untuned and found.tuning is not None:
        if folder is not None:
            raise InputError(f"{folder} is tuned; --untuned needs another folder. Give the file.")
        found = replace(found, tuning=None)
        default = default.with_name(f"{default.name}-untuned")
    return found, options.out or folder or default


def _read_parameters(words: Sequence[str]) -> dict[str, str]:
    """Read ``KEY=VALUE`` words."""
    for word in words:
        if not re.fullmatch(r"[a-z][a-z_]*=.+", word):
            raise InputError(f"--slurm takes KEY=VALUE, e.g. partition=gpu, got {word!r}.")
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def parse_duration(text: str) -> float:
    """Read a duration like ``45m``, ``1h30m`` or ``90s``."""
    parts = re.fullmatch(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,9})s)?", text)
    if not text or parts is None:
        raise InputError(f"--until takes a duration like 45m, 1h30m or 90s, got {text!r}.")
    hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return 3600 * hours + 60 * minutes + seconds
