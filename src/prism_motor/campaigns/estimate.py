"""What a whole campaign will take: its tuning runs and its reported ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor.campaigns.plan import Plan
from prism_motor.campaigns.tuning import plan_tuning
from prism_motor.train.estimate import (
    CostEstimate,
    Rates,
    add,
    estimate_run,
    measure,
    tell_scaled,
)

if TYPE_CHECKING:
    from prism_motor.campaigns.config import Campaign
    from prism_motor.campaigns.work import PlannedRun


def estimate_campaign(
    campaign: Campaign, folder: Path, seconds: float, say: Callable[[str], None]
) -> dict[str, tuple[int, CostEstimate]]:
    """Return the number of runs and what they take, by stage: tuning, if there is one, and runs.

    Every arm of every variant is measured once; tuning runs cost as much per update as others.

    Args:
        campaign: The campaign.
        folder: Its folder, which need not exist.
        seconds: Length of each measurement.
        say: Called before each one, and with what was scaled up.
    """
    plan = Plan(campaign, folder)
    stages = {
        "tuning": plan_tuning(plan),
        "runs": plan.reported({arm.name: {} for arm in campaign.arms}),
    }
    rates: dict[tuple[str, str], Rates] = {}
    for run in stages["runs"]:
        if (run.variant, run.arm) not in rates:
            say(f"measuring {run.place.as_posix().rpartition('-')[0]} ...")
            rates[run.variant, run.arm] = measure(run.config, seconds)
    if told := tell_scaled(run.config for run in stages["runs"]):
        say(told)
    return {
        name: (len(runs), add([_estimate(run, rates[run.variant, run.arm]) for run in runs]))
        for name, runs in stages.items()
        if runs
    }


def _estimate(run: PlannedRun, rates: Rates) -> CostEstimate:
    per_update = rates.time(run.config) / run.config.updates
    evaluations = run.evaluations * run.guess_evaluation(per_update)
    # One process trains, and one does the evaluations of each protocol.
    return estimate_run(run.config, rates, evaluations, jobs=1 + len(run.protocols))
