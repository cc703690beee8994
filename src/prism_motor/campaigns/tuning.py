"""The sweep before the reported runs: the same number of runs per arm, on separate seeds.

A setting is scored by the domain's tuning metric over the last tenth of training, averaged over the
tuning seeds. That number comes from thousands of samples, so it is less noisy than a final
evaluation, and it is free. A setting with a diverged run cannot win. In a tie, the first in the
file wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor.campaigns.config import Arm, CampaignError, combinations, setting_name
from prism_motor.runs import Run, to_dict
from prism_motor.runs.atomic import write_json
from prism_motor.runs.layout import METRICS, TUNING, TUNING_RUNS
from prism_motor.runs.verification import verify
from prism_motor.train.config import check_unique

if TYPE_CHECKING:
    from prism_motor.campaigns.ledger import RunState
    from prism_motor.campaigns.plan import Plan
    from prism_motor.campaigns.work import PlannedRun, Settings
    from prism_motor.train.config import RunConfig

_FINAL = ("trained", "diverged")
"""States in which a tuning run is over."""


def plan_tuning(plan: Plan, *, waiting: bool = False) -> list[PlannedRun]:
    """Return the tuning runs: all settings of all arms with the first seed, then with the next.

    Arms are tuned in the first variant and keep the winner in the others.

    Args:
        plan: The campaign in its folder.
        waiting: Whether a preparation they need is not done yet.
    """
    campaign = plan.campaign
    if campaign.tuning is None:
        return []
    bases = {arm.name: _base(plan, arm) for arm in campaign.arms}
    settings = {arm.name: _settings(plan, arm, bases[arm.name]) for arm in campaign.arms}
    runs = []
    for seed in campaign.tuning.seeds:
        for tried in zip(*settings.values(), strict=True):
            for arm, setting in zip(campaign.arms, tried, strict=True):
                run = _tuning_run(plan, arm, bases[arm.name], setting, seed)
                runs.append(replace(run, waiting=waiting))
    return runs


def _base(plan: Plan, arm: Arm) -> RunConfig:
    """Return the settings of an arm without tuning."""
    return plan.make_run(Path(arm.name), plan.variants[0], arm, 0, {}).config


def _tuning_run(plan: Plan, arm: Arm, base: RunConfig, setting: Settings, seed: int) -> PlannedRun:
    assert plan.campaign.tuning is not None
    shorter = plan.domain.shorten(base, plan.campaign.tuning.fraction)
    # Swept values override shortened schedules, but every arm gets the same number of updates.
    changes = {**shorter, **setting, "updates": shorter["updates"]}
    place = Path(TUNING_RUNS) / arm.name / f"{setting_name(setting)}-{seed}"
    return replace(plan.make_run(place, plan.variants[0], arm, seed, changes), setting=setting)


def _settings(plan: Plan, arm: Arm, base: RunConfig) -> list[Settings]:
    """Return the settings to try for an arm, with factors (``KEY.times``) turned into values."""
    known = to_dict(base)
    found = []
    for combination in combinations(plan.campaign, arm):
        setting = {}
        for key, value in combination.items():
            plain = key.removesuffix(".times")
            setting[plain] = value if plain == key else _multiply(known, plain, value)
        found.append(setting)
    check_unique(f"The settings of the sweep of {arm.name}", [*map(setting_name, found)])
    return found


def _multiply(config: dict[str, Any], key: str, factor: Any) -> float:
    """Return a setting times a factor; integers stay integers."""
    number: Any = config
    for name in key.split("."):
        number = number.get(name) if isinstance(number, dict) else None
    for value in (number, factor):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CampaignError(f"The sweep multiplies {key}, which is not a number: {value!r}.")
    try:
        product = number * factor
        return round(product) if isinstance(number, int) else float(f"{product:.6g}")
    except (OverflowError, ValueError):
        raise CampaignError(f"The sweep multiplies {key} by {factor}: too large.") from None


def score(run: PlannedRun) -> float:
    """Return the mean of the domain's tuning metric over the last tenth of a finished run."""
    metric, _ = run.domain.tuning_metric
    if problems := [one for one in verify(run.path, weights=False).problems if METRICS in one]:
        raise CampaignError(
            f"{run.path} cannot be scored: {problems[0]}. Delete the folder; the campaign then "
            "trains it again."
        )
    rows = [row for row in Run.open(run.path).metrics() if metric in row]
    if not rows:
        raise CampaignError(f"{run.path} cannot be scored: its metrics have no {metric}.")
    last = rows[-max(1, len(rows) // 10) :]
    return sum(row[metric] for row in last) / len(last)


def judge(
    plan: Plan, runs: list[PlannedRun], states: Mapping[Path, RunState]
) -> dict[str, Any] | None:
    """Return the whole sweep with scores and, for arms whose runs are all done, the winner."""
    campaign = plan.campaign
    if campaign.tuning is None:
        return None
    metric, higher = plan.domain.tuning_metric
    arms = {}
    for arm in campaign.arms:
        own = [run for run in runs if run.arm == arm.name]
        settings = _score_settings(own, states)
        complete = all(run["state"] in _FINAL for row in settings for run in row["runs"])
        scored = [row for row in settings if row["score"] is not None]
        best = max if higher else min
        winner = best(scored, key=lambda row: row["score"]) if scored else None
        arms[arm.name] = {
            "chosen": winner["setting"] if complete and winner is not None else None,
            "complete": complete,
            "settings": settings,
        }
    criterion = f"{metric.replace('_', ' ')} over the last 10 % of updates, mean over tuning seeds"
    return {
        "criterion": criterion if higher else f"{criterion}; lower is better",
        "seeds": list(campaign.tuning.seeds),
        "fraction": campaign.tuning.fraction,
        "runs_per_arm": len(runs) // len(campaign.arms),
        "arms": arms,
    }


def _score_settings(
    runs: list[PlannedRun], states: Mapping[Path, RunState]
) -> list[dict[str, Any]]:
    """Return one row per setting of an arm: its runs, and their mean score once all have one."""
    rows: dict[str, dict[str, Any]] = {}
    for run in runs:
        state = states[run.path]
        row = rows.setdefault(
            json.dumps(run.setting), {"setting": run.setting, "score": None, "runs": []}
        )
        row["runs"].append(
            {
                "seed": run.seed,
                "folder": run.title,
                "state": state.word,
                "score": score(run) if state.trained else None,
            }
        )
    for row in rows.values():
        scores = [one["score"] for one in row["runs"]]
        row["score"] = None if None in scores else sum(scores) / len(scores)
    return list(rows.values())


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """Write the sweep, if it changed."""
    file = folder / TUNING
    if not file.is_file() or file.read_text() != json.dumps(results, indent=2) + "\n":
        write_json(file, results)
