"""What comes first in a campaign, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from prism_motor.campaigns import tuning
from prism_motor.campaigns.config import Campaign
from prism_motor.campaigns.manipulation import ManipulationCampaign
from prism_motor.campaigns.manipulation_plan import (
    DemonstrationRun,
    plan_demonstrations,
    plan_imitation,
)
from prism_motor.campaigns.plan import plan_runs
from prism_motor.campaigns.planned import PlannedRun, Settings
from prism_motor.campaigns.state import RunState

AnyCampaign = Campaign | ManipulationCampaign
"""Whatever a campaign file can describe."""

States = Mapping[Path, RunState]
"""How far runs are, by folder."""


class Planner(Protocol):
    """Plans the runs of a campaign in its folder."""

    sweep: dict[str, Any] | None
    """The tuning with its winners so far, if there is any."""

    @property
    def first(self) -> Sequence[PlannedRun]:
        """Runs that others wait for."""
        ...

    def plan_reported(self, states: States) -> Sequence[PlannedRun]:
        """Return the runs that are reported, given how far the first ones are."""
        ...


def make_planner(campaign: AnyCampaign, folder: Path) -> Planner:
    """Return the planner of a campaign."""
    if isinstance(campaign, ManipulationCampaign):
        return ManipulationPlanner(campaign, folder)
    return LocomotionPlanner(campaign, folder)


class LocomotionPlanner:
    """Tuning first; the reported runs take what won."""

    def __init__(self, campaign: Campaign, folder: Path) -> None:
        self.campaign, self.folder = campaign, folder
        self.first = tuning.plan_tuning(campaign, folder)
        self.sweep: dict[str, Any] | None = None

    def plan_reported(self, states: States) -> Sequence[PlannedRun]:
        """Return all arms and seeds; those whose arm is not tuned yet wait."""
        winners: dict[str, Settings | None] = {arm.name: {} for arm in self.campaign.arms}
        if self.campaign.tuning is not None:
            self.sweep = tuning.judge(self.campaign, self.first, states)
            winners = {name: arm["chosen"] for name, arm in self.sweep["arms"].items()}
        return plan_runs(self.campaign, self.folder, winners)


class ManipulationPlanner:
    """Demonstrations first; the policies of a task wait for them."""

    sweep: dict[str, Any] | None = None

    def __init__(self, campaign: ManipulationCampaign, folder: Path) -> None:
        self.campaign, self.folder = campaign, folder
        self.first: list[DemonstrationRun] = plan_demonstrations(campaign, folder)

    def plan_reported(self, states: States) -> Sequence[PlannedRun]:
        """Return all tasks, arms and seeds; those without their demonstrations wait."""
        missing = {run.variant for run in self.first if not states[run.path].trained}
        return plan_imitation(self.campaign, self.folder, missing)
