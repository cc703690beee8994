"""Campaigns: arms x seeds x variants from one file, in any domain, resumed where they stopped."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.campaigns.config import (
        Arm,
        Campaign,
        CampaignError,
        Tuning,
        Variant,
        read_campaign,
    )
    from prism_motor.campaigns.files import find_campaign, report_campaign
    from prism_motor.campaigns.runner import Outcome, Runner
    from prism_motor.campaigns.status import describe_status

__all__ = [
    "Arm",
    "Campaign",
    "CampaignError",
    "Outcome",
    "Runner",
    "Tuning",
    "Variant",
    "describe_status",
    "find_campaign",
    "read_campaign",
    "report_campaign",
]

# The runner needs file locks, which not every system has.
__getattr__ = lazy(
    __name__,
    {
        "Arm": "config",
        "Campaign": "config",
        "CampaignError": "config",
        "Outcome": "runner",
        "Runner": "runner",
        "Tuning": "config",
        "Variant": "config",
        "describe_status": "status",
        "find_campaign": "files",
        "read_campaign": "config",
        "report_campaign": "files",
    },
)
