"""Campaign files: TOML by path or from the library, and the contents of campaign folders."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._checks import InputError, PrismError, check_choice
from prism_motor.campaigns.config import Campaign, CampaignError, read_campaign
from prism_motor.runs import to_dict
from prism_motor.runs.atomic import atomic_folder, write_json
from prism_motor.runs.boundary import Boundary
from prism_motor.runs.checkpoints import checkpoint_steps
from prism_motor.runs.layout import (
    CAMPAIGN,
    CHECKPOINTS,
    CONFIG,
    EVALUATIONS,
    LAST,
    METRICS,
    PROVENANCE,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

if TYPE_CHECKING:
    from prism_motor.campaigns.work import PlannedRun
    from prism_motor.report.write import Report

_COPIED = (CONFIG, PROVENANCE, METRICS, LAST, CHECKPOINTS, EVALUATIONS)
"""The essential files of a run; the rest can be recreated from them."""


def library() -> dict[str, str]:
    """Return the texts of the campaigns shipped with prism, by name."""
    folder = resources.files("prism_motor.campaigns") / "library"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in files
        if file.name.endswith(".toml")
    }


def find_campaign(given: str, preset: str | None = None) -> tuple[Campaign, Path | None]:
    """Return a campaign, and its folder if a folder was given.

    Args:
        given: A TOML file, a library name, plain or with a preset (``table1-g1``), or the
            folder of a campaign that was run.
        preset: Preset to use instead of the campaign's.
    """
    path, shipped = Path(given), library()
    folder = None
    if (path / CAMPAIGN).is_file():
        data, where, folder = _parse(json.loads, path / CAMPAIGN), str(path / CAMPAIGN), path
    elif path.is_file():
        data, where = _parse(tomllib.loads, path), given
    elif path.is_dir():
        raise CampaignError(f"{path} is not a campaign folder: it has no {CAMPAIGN}.")
    elif path.suffix or len(path.parts) > 1:
        raise CampaignError(f"No such campaign file: {path}.")
    else:
        name, _, ending = given.rpartition("-")
        if name in shipped and given not in shipped and preset in (None, ending):
            given, preset = name, ending
        text = shipped[check_choice("campaign", given, shipped)]
        data, where = tomllib.loads(text), given
    if folder is None and preset is not None and isinstance(data, dict):
        data = {**data, "preset": preset}
    campaign = read_campaign(data, where)
    if preset not in (None, campaign.preset):
        raise CampaignError(
            f"{folder} uses the preset {campaign.preset}; {preset} needs another folder."
        )
    return campaign, folder


def read_overrides(given: Sequence[str]) -> dict[str, Any]:
    """Read settings by dotted key from ``KEY=VALUE``; a value that is no TOML value is a text."""
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"--override takes KEY=VALUE, e.g. updates=500, got {text!r}.")
        try:
            found[key] = tomllib.loads(f"value = {value}")["value"]
        except ValueError:
            found[key] = value
    return found


def _parse(loads: Callable[[str], Any], path: Path) -> Any:
    try:
        return loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CampaignError(f"{path} cannot be read: {error}.") from error


def write_record(campaign: Campaign, folder: Path) -> None:
    """Write the campaign into its folder, for readers of its runs."""
    write_json(folder / CAMPAIGN, to_dict(campaign))


def find_equal(run: PlannedRun, folders: Sequence[Path]) -> Path | None:
    """Return a finished run with exactly the same settings, including arm and seed."""
    for folder in folders:
        for file in sorted(filter(Boundary(folder).holds, folder.rglob(CONFIG))):
            if _is_equal(run, file.parent):
                return file.parent
    return None


def _is_equal(run: PlannedRun, path: Path) -> bool:
    steps = checkpoint_steps(path / CHECKPOINTS)
    if not steps or steps[-1] != run.total:
        return False
    try:
        run.check_run(path)
    except PrismError:
        return False
    return True


def copy_run(source: Path, target: Path) -> None:
    """Copy the essential files of a run atomically, with its provenance."""
    boundary = Boundary(source)
    for path in source.rglob("*"):
        if path.relative_to(source).parts[0] in _COPIED and not boundary.holds(path):
            raise CampaignError(
                f"{source} is not taken over: {boundary.notes[0]} Put the file itself in its place."
            )
    with atomic_folder(target) as temporary:
        for name in _COPIED:
            if (source / name).is_dir():
                ignored = shutil.ignore_patterns(".*")
                shutil.copytree(source / name, temporary / name, ignore=ignored)
            elif (source / name).is_file():
                shutil.copy2(source / name, temporary / name)


def report_campaign(
    campaign: Campaign, folder: Path, reference: str | None = None, *, command: str
) -> Report:
    """Write the page of a campaign.

    Args:
        campaign: The campaign.
        folder: Its folder.
        reference: Arm that the others are compared with; default: the domain's, if present.
        command: Command that the page gives to reproduce it.
    """
    domain = campaign.domain
    arms = [campaign.label(arm) for arm in campaign.arms]
    default = domain.reference if domain.reference in arms else arms[0]
    chosen = default if reference is None else domain.arm_name(reference)
    return write_page(
        folder,
        reference=check_choice("arm", chosen, arms),
        title=f"{campaign.name}, {campaign.preset}",
        intro=campaign.description,
        command=command,
    )


def write_page(
    folder: Path, *, reference: str | None = None, title: str, intro: str, command: str
) -> Report:
    """Write the page of all runs in a folder."""
    from prism_motor.report.write import write_report

    return write_report(folder, reference=reference, title=title, intro=intro, command=command)
