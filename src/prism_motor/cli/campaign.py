"""``prism campaign``: many runs from one file, as far as they are not done."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from prism_motor._errors import InputError

if TYPE_CHECKING:
    from prism_motor.campaigns.planners import AnyCampaign


def run(
    file: Positional[str],
    preset: str | None = None,
    out: Path | None = None,
    jobs: int | None = None,
    until: str | None = None,
    reuse: tuple[Path, ...] = (),
) -> None:
    """Run what is missing of a campaign; what was cut goes on, what is done stays.

    Args:
        file: A TOML file, the name of a campaign that prism comes with, or a campaign's folder.
        preset: Preset to use instead of the file's.
        out: The campaign's folder; default campaigns/NAME-PRESET.
        jobs: Child processes at a time, one thread each; default: the number of cores.
        until: Start no new job after this time, e.g. 45m or 1h30m.
        reuse: Folders of other campaigns: their runs that are exactly what is wanted are copied.
    """
    from prism_motor.campaigns.runner import Runner
    from prism_motor.nn.checks import check_size

    seconds = None if until is None else _parse_duration(until)
    slots = check_size("prism campaign", "--jobs", _cores() if jobs is None else jobs)
    campaign, folder = _find(file, preset, out)
    runner = Runner(campaign, folder, jobs=slots, until=seconds, reuse=reuse)
    try:
        outcome = runner.run()
    except KeyboardInterrupt:
        print(f"Stopped. Go on with: prism campaign run {folder}", file=sys.stderr)
        raise
    print(f"{outcome.done} of {outcome.total} runs done.")
    if outcome.done == outcome.total:
        print(f"Next: prism campaign report {folder}")
        return
    for name, why in outcome.failures.items():
        print(f"{name}: {why}", file=sys.stderr)
    print(f"Go on with: prism campaign run {folder}", file=sys.stderr)
    if outcome.failures:
        sys.exit(1)


def status(
    file: Positional[str],
    preset: str | None = None,
    out: Path | None = None,
    jobs: int | None = None,
) -> None:
    """Show how far a campaign is: arms, seeds, evaluations, tuning, time left.

    Args:
        file: A TOML file, the name of a campaign that prism comes with, or a campaign's folder.
        preset: Preset to use instead of the file's.
        out: The campaign's folder; default campaigns/NAME-PRESET.
        jobs: Jobs at a time that the estimate counts with; default: the number of cores.
    """
    from prism_motor.campaigns.status import describe_status

    campaign, folder = _find(file, preset, out)
    print(describe_status(campaign, folder, jobs or _cores()))


def report(
    file: Positional[str],
    preset: str | None = None,
    out: Path | None = None,
    reference: str | None = None,
) -> None:
    """Write the page of a campaign: tables, curves, the tuning, and what is still missing.

    Args:
        file: A TOML file, the name of a campaign that prism comes with, or a campaign's folder.
        preset: Preset to use instead of the file's.
        out: The campaign's folder; default campaigns/NAME-PRESET. The page is its report.html.
        reference: Arm that the others are compared with; default: mlp-larger or mlp, else the first
            one.
    """
    from prism_motor.nn.checks import check_choice
    from prism_motor.report import write_report

    campaign, folder = _find(file, preset, out)
    names = [arm.name for arm in campaign.arms]
    default = next(
        (name for name in ("mlp-matched", "mlp-larger", "mlp") if name in names), names[0]
    )
    words = ["prism", "campaign", "report", str(folder)]
    words += ["--reference", reference] if reference else []
    made = write_report(
        folder,
        reference=check_choice("arm", reference or default, names),
        title=f"{campaign.name}, {campaign.preset}",
        intro=campaign.description,
        command=shlex.join(words),
    )
    print(made.summary)
    for chapter in made.chapters:
        if chapter.findings:
            print(chapter.title)
            print("\n".join(f"- {who}{what}" for who, what in chapter.findings))
    if made.problems:
        print(f"{len(made.problems)} things are missing or were left out; the page lists them.")
    print(made.page)


def _find(file: str, preset: str | None, out: Path | None) -> tuple[AnyCampaign, Path]:
    from prism_motor.campaigns.files import find_campaign

    campaign, folder = find_campaign(file, preset)
    return campaign, out or folder or Path("campaigns") / f"{campaign.name}-{campaign.preset}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _parse_duration(text: str) -> float:
    """Read a duration like ``45m``, ``1h30m`` or ``90s``."""
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text)
    if not text or parts is None:
        raise InputError(f"--until takes a duration like 45m, 1h30m or 90s, got {text!r}.")
    hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return 3600 * hours + 60 * minutes + seconds
