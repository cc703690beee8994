"""The sweep before the reported runs: the same number of runs for every arm, on seeds of its own.

A setting is scored by the reward per second over the last tenth of its training, mean over the
tuning seeds. Every update adds thousands of samples to that number, so it is steadier than a final
evaluation, it counts falls (a robot that starts anew earns less), and it costs nothing. A setting
with a run that diverged cannot win. Of equal ones, the first in the file wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from prism_motor.campaigns.config import Arm, Campaign, CampaignError, combinations
from prism_motor.campaigns.plan import UNNAMED, LocomotionRun, make_run, merged
from prism_motor.campaigns.planned import Settings
from prism_motor.campaigns.state import RunState
from prism_motor.runs import Run, to_dict
from prism_motor.runs.atomic import write_json

RESULTS = "tuning.json"
"""The sweep and its winners, in the campaign's folder."""

CRITERION = "reward per second over the last 10 % of updates, mean over tuning seeds"


def plan_tuning(campaign: Campaign, folder: Path) -> list[LocomotionRun]:
    """Return the tuning runs: all settings of all arms with a seed before the next seed.

    Arms are tuned in the first variant, and keep the winner in the others.
    """
    tuning = campaign.tuning
    if tuning is None:
        return []
    settings = {arm.name: _settings(campaign, arm, folder) for arm in campaign.arms}
    runs = []
    for seed in tuning.seeds:
        for tried in zip(*settings.values(), strict=True):
            for arm, setting in zip(campaign.arms, tried, strict=True):
                runs.append(_tuning_run(campaign, arm, folder, setting, seed))
    return runs


def _tuning_run(
    campaign: Campaign, arm: Arm, folder: Path, setting: Settings, seed: int
) -> LocomotionRun:
    assert campaign.tuning is not None
    variant = (campaign.variants or (UNNAMED,))[0]
    base = _base(campaign, arm, folder)
    fraction = campaign.tuning.fraction
    overrides = {
        **merged(campaign, variant, arm),
        "ppo.decay_samples": base.ppo.decay_samples * fraction,
        **setting,
        "iterations": max(1, round(base.iterations * fraction)),
    }
    names = [f"{key.rpartition('.')[2]}={value}" for key, value in setting.items()]
    place = Path("tuning") / arm.name / f"{','.join(names)}-{seed}"
    run = make_run(campaign, folder, place, variant, arm, seed, overrides)
    return replace(run, setting=setting)


def _base(campaign: Campaign, arm: Arm, folder: Path) -> Any:
    variant = (campaign.variants or (UNNAMED,))[0]
    overrides = merged(campaign, variant, arm)
    return make_run(campaign, folder, Path(arm.name), variant, arm, 0, overrides).config


def _settings(campaign: Campaign, arm: Arm, folder: Path) -> list[Settings]:
    """Return what is tried for an arm, with factors (``KEY.times``) turned into values."""
    base = to_dict(_base(campaign, arm, folder))
    found = []
    for combination in combinations(campaign, arm):
        setting = {}
        for key, value in combination.items():
            plain = key.removesuffix(".times")
            if plain != key:
                number = _look_up(base, plain)
                product = number * value
                value = round(product) if isinstance(number, int) else float(f"{product:.6g}")
            setting[plain] = value
        found.append(setting)
    return found


def _look_up(config: dict[str, Any], key: str) -> float:
    value: Any = config
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CampaignError(f"The sweep multiplies {key}, which is no number but {value!r}.")
    return value


def score(run: LocomotionRun) -> float:
    """Return the reward per second over the last tenth of a finished tuning run."""
    rows = Run.open(run.path).metrics()
    last = rows[-max(1, len(rows) // 10) :]
    return sum(row["reward_per_second"] for row in last) / len(last)


def judge(
    campaign: Campaign, runs: list[LocomotionRun], states: Mapping[Path, RunState]
) -> dict[str, Any]:
    """Return the whole sweep with scores and, for arms whose runs are all done, the winner."""
    assert campaign.tuning is not None
    arms = {}
    for arm in campaign.arms:
        settings: dict[str, dict[str, Any]] = {}
        for run in (run for run in runs if run.arm == arm.name):
            state = states[run.path]
            row = settings.setdefault(
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
        for row in settings.values():
            scores = [one["score"] for one in row["runs"]]
            row["score"] = None if None in scores else sum(scores) / len(scores)
        open_runs = [r for s in settings.values() for r in s["runs"] if r["state"] not in _FINAL]
        scored = [row for row in settings.values() if row["score"] is not None]
        winner = max(scored, key=lambda row: row["score"], default=None)
        arms[arm.name] = {
            "chosen": None if open_runs or winner is None else winner["setting"],
            "complete": not open_runs,
            "settings": list(settings.values()),
        }
    tuning = campaign.tuning
    return {
        "criterion": CRITERION,
        "seeds": list(tuning.seeds),
        "fraction": tuning.fraction,
        "runs_per_arm": len(runs) // len(campaign.arms),
        "arms": arms,
    }


_FINAL = ("trained", "diverged")


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """Write the sweep, if it changed."""
    file = folder / RESULTS
    if not file.is_file() or file.read_text() != json.dumps(results, indent=2) + "\n":
        write_json(file, results)
