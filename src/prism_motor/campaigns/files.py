"""Campaign files: TOML by path, by name from the library, or a campaign's own folder."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from prism_motor.campaigns.config import Campaign, CampaignError
from prism_motor.campaigns.manipulation import ManipulationCampaign
from prism_motor.campaigns.planners import AnyCampaign
from prism_motor.nn.checks import check_choice
from prism_motor.runs import from_dict, to_dict
from prism_motor.runs.atomic import write_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

RECORD = "campaign.json"
"""The campaign as it was last run, in its folder."""


def library() -> dict[str, str]:
    """Return the texts of the campaigns that prism comes with, by name."""
    folder = resources.files("prism_motor.campaigns") / "library"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in files
        if file.name.endswith(".toml")
    }


def find_campaign(given: str, preset: str | None = None) -> tuple[AnyCampaign, Path | None]:
    """Return a campaign, and its folder if that is what was given.

    Args:
        given: A TOML file, a name of the library, plain or with a preset (``table1-g1``), or the
            folder of a campaign that was run.
        preset: Preset to use instead of the campaign's.
    """
    path, shipped = Path(given), library()
    folder = None
    if (path / RECORD).is_file():
        data, where, folder = _parse(json.loads, path / RECORD), str(path / RECORD), path
    elif path.is_file():
        data, where = _parse(tomllib.loads, path), given
    elif path.is_dir():
        raise CampaignError(f"{path} is no campaign folder: it has no {RECORD}.")
    elif path.suffix or len(path.parts) > 1:
        raise CampaignError(f"There is no campaign file {path}.")
    else:
        name, _, ending = given.rpartition("-")
        if name in shipped and given not in shipped and preset in (None, ending):
            given, preset = name, ending
        text = shipped[check_choice("campaign", given, shipped)]
        data, where = tomllib.loads(text), given
    kinds = {one.kind: one for one in (Campaign, ManipulationCampaign)}
    kind = check_choice(f"kind of campaign in {where}", data.get("kind", Campaign.kind), kinds)
    campaign: AnyCampaign = from_dict(kinds[kind], data, where)
    if preset is not None and preset != campaign.preset:
        if folder is not None:
            raise CampaignError(
                f"{folder} is of the preset {campaign.preset}; {preset} needs another folder."
            )
        campaign = replace(campaign, preset=preset)
    return campaign, folder


def write_record(campaign: AnyCampaign, folder: Path) -> None:
    """Write the campaign into its folder, for those who read its runs."""
    write_json(folder / RECORD, to_dict(campaign))


def _parse(loads: Any, path: Path) -> dict[str, Any]:
    try:
        return loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CampaignError(f"{path} cannot be read: {error}.") from error
