"""``prism estimate``: what a run or a campaign will take, before it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from prism_motor._checks import InputError
from prism_motor._console import available_cores, count, duration, text_table
from prism_motor._ranges import Checked, above
from prism_motor.cli.flags import take
from prism_motor.domains import DOMAINS

_USAGE = """usage: prism estimate DOMAIN [OPTIONS OF prism train] [--seconds N]
       prism estimate --config FILE [OPTIONS OF prism train] [--seconds N]
       prism estimate CAMPAIGN [--preset NAME] [--override KEY=VALUE ...] [--untuned] [--seconds N]

Trains for about N seconds (10) without writing anything, for a campaign once per arm and variant,
and prints samples, physics steps, memory, core-hours and GPU-hours of the whole.
Domains: {domains}. A campaign is a TOML file, a folder, or the name of one shipped with prism;
one that is called like a domain is named with its preset: tracking-laptop."""


@dataclass(frozen=True)
class _Length(Checked, section="--"):
    """How long to measure."""

    seconds: Annotated[float, above(0, 3600)] = 10.0
    """Seconds per measurement."""


def estimate(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Estimate what a run or a campaign will take; see ``prism estimate --help``.

    Args:
        arguments: Arguments after ``prism estimate``.
        plugins: User modules, which become part of the runs' settings.
    """
    words = list(arguments)
    if not words or words[0] in ("-h", "--help"):
        print(_USAGE.format(domains=", ".join(DOMAINS)))
        sys.exit(0 if words else 2)
    seconds = _read_length(take(words, "--seconds"))
    if words and (words[0] in DOMAINS or words[0].startswith("-")):
        _estimate_run(words, plugins, seconds)
    else:
        _estimate_campaign(words, plugins, seconds)


def _read_length(given: Sequence[str]) -> float:
    if not given:
        return _Length().seconds
    try:
        seconds = float(given[-1])
    except ValueError as error:
        raise InputError(f"--seconds must be a number of seconds, got {given[-1]!r}.") from error
    return _Length(seconds).seconds  # which has a range


def _estimate_run(words: list[str], plugins: Sequence[str], seconds: float) -> None:
    from prism_motor.cli.train import read_settings
    from prism_motor.train.estimate import estimate_run, measure, tell_scaled

    domain, options, config = read_settings(words, plugins)
    processes = options.processes
    rates = measure(config, seconds, processes)
    found = estimate_run(config, rates, processes=processes)
    team = "" if processes == 1 else f"{processes} processes x "
    print(
        f"{config.arm} on {domain.task_name(config)}, preset {config.preset}: "
        f"{count(config.updates, 'update')}, {team}{count(config.threads, 'thread')}, "
        f"{config.device}\n"
    )
    numbers = {name: text for name, text in found.numbers().items() if "evaluations" not in name}
    print(text_table([["the whole run", ""], *map(list, numbers.items())]))
    print(
        f"\nAbout {duration(found.seconds)} on this machine, by its speed just now, "
        f"{duration(rates.start)} of them before the first update."
    )
    if told := tell_scaled([domain.share(config, processes)]):
        print(told)
    _warn_of_memory(processes * found.memory)


def _estimate_campaign(words: list[str], plugins: Sequence[str], seconds: float) -> None:
    from prism_motor.campaigns.estimate import estimate_campaign
    from prism_motor.cli.campaign import CampaignOptions, find_campaign_of
    from prism_motor.cli.flags import parse
    from prism_motor.train.estimate import add

    options = parse(
        CampaignOptions, words, prog="prism estimate CAMPAIGN",
        description="Estimate the hours and memory of a campaign; --seconds N: train N for each.",
    )  # fmt: skip
    campaign, folder = find_campaign_of(options, plugins)
    stages = estimate_campaign(campaign, folder, seconds, lambda text: print(text, flush=True))
    whole = add([found for _, found in stages.values()])
    columns = {name: (str(runs), found) for name, (runs, found) in stages.items()}
    if len(stages) > 1:
        columns["in all"] = (str(sum(runs for runs, _ in stages.values())), whole)
    values = [found.numbers() for _, found in columns.values()]
    rows = [
        [campaign.name, *columns],
        ["runs", *(runs for runs, _ in columns.values())],
        *([name, *(value[name] for value in values)] for name in values[0]),
    ]
    print(f"\n{text_table(rows)}")
    cores = available_cores()
    print(
        f"\nAbout {duration(whole.seconds / cores)} on this machine with {count(cores, 'job')} "
        "at a time, by its speed just now; evaluations are guessed."
    )
    _warn_of_memory(cores * whole.memory, f" with {count(cores, 'job')} at a time; give --jobs")
    if campaign.domain.preparation is not None:
        print("Preparations, such as demonstrations to record, are not included.")


def _warn_of_memory(needed: float, how: str = "") -> None:
    """Say if this machine has less memory than needed, where the system tells how much it has."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return
    if needed > there:
        print(f"This machine has {there / 1e9:.0f} GB of memory and needs {needed / 1e9:.0f}{how}.")
