"""From a campaign to its runs: folders, resolved configs, and the commands that make them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from prism.campaigns.config import Arm, Campaign, CampaignError, Evaluation, Variant
from prism.learn.config import TrainConfig
from prism.learn.presets import make_config
from prism.locomotion.conditions import find_condition
from prism.runs.configs import flatten

UNNAMED = Variant("")
"""The variant of a campaign without any."""

Settings = dict[str, Any]
"""Overrides by dotted key."""


@dataclass(frozen=True)
class PlannedRun:
    """One run folder as the campaign wants it."""

    path: Path
    """The run folder."""
    log: Path
    """Where the output of its jobs goes."""
    variant: str
    """Name of the variant, empty without variants."""
    arm: str
    """Name of the arm."""
    actor: str
    """Kind of policy network."""
    seed: int
    """Training seed."""
    overrides: Settings
    """What differs from the preset, all sources together."""
    config: TrainConfig
    """The resolved config."""
    evaluation: Evaluation | None = None
    """What is evaluated after training; ``None`` for tuning runs."""
    setting: Settings | None = None
    """What a tuning run tries; ``None`` for reported runs."""
    waiting: bool = False
    """Whether its config is not final yet, because its arm is still being tuned."""

    @property
    def title(self) -> str:
        """Name for people: the folder inside the campaign's."""
        return "/".join(self.log.with_suffix("").parts[self.log.parts.index("logs") + 1 :])

    def train_command(self, resume: bool) -> list[str]:
        """Return the command that trains the run, or goes on with it."""
        words = [sys.executable, "-m", "prism.cli", "train", "locomotion"]
        if resume:
            return [*words, "--resume", str(self.path)]
        words += ["--preset", self.config.preset, "--actor", self.actor, "--arm", self.arm]
        words += ["--seed", str(self.seed), "--out", str(self.path)]
        for key, value in self.overrides.items():
            words += ["--set", f"{key}={json.dumps(value)}"]
        return words

    def evaluate_command(self) -> list[str]:
        """Return the command that does the evaluations that are missing."""
        assert self.evaluation is not None
        chosen = self.evaluation
        words = [sys.executable, "-m", "prism.cli", "eval", str(self.path)]
        words += ["--conditions", *chosen.conditions, "--seeds", *map(str, chosen.seeds)]
        words += ["--envs", str(chosen.envs), "--episodes", str(chosen.episodes)]
        return [*words, "--checkpoint", str(self.config.iterations)]


def plan_runs(
    campaign: Campaign, folder: Path, winners: Mapping[str, Settings | None]
) -> list[PlannedRun]:
    """Return the reported runs, most informative first: all arms with a seed before the next.

    Args:
        campaign: The campaign.
        folder: Its folder.
        winners: What the tuning chose for each arm; ``None`` for arms that are still tuned.
    """
    runs = []
    for seed in campaign.seeds:
        for variant in campaign.variants or (UNNAMED,):
            for arm in campaign.arms:
                winner = winners[arm.name]
                overrides = {**merged(campaign, variant, arm), **(winner or {})}
                place = Path(variant.name) / f"{arm.name}-{seed}"
                run = make_run(campaign, folder, place, variant, arm, seed, overrides)
                run = replace(run, evaluation=campaign.evaluation, waiting=winner is None)
                _check_conditions(run)
                runs.append(run)
    return runs


def make_run(
    campaign: Campaign,
    folder: Path,
    place: Path,
    variant: Variant,
    arm: Arm,
    seed: int,
    overrides: Settings,
) -> PlannedRun:
    """Resolve the config of one run and put it in its place inside the campaign's folder."""
    try:
        config = _resolve(campaign.preset, arm.actor, arm.name, json.dumps(overrides))
    except (ValueError, TypeError) as error:
        raise CampaignError(f"{place}: {error}") from error
    log = folder / "logs" / place.with_name(f"{place.name}.log")
    config = replace(config, seed=seed)
    return PlannedRun(
        folder / place, log, variant.name, arm.name, arm.actor, seed, overrides, config
    )


@cache
def _resolve(preset: str, actor: str, name: str, overrides: str) -> TrainConfig:
    """Make a config; cached, because matching an MLP to a task takes a while."""
    return make_config(preset, actor, name=name, overrides=json.loads(overrides))


def _check_conditions(run: PlannedRun) -> None:
    assert run.evaluation is not None
    for condition in run.evaluation.conditions:
        try:
            find_condition(condition).apply(run.config.task)
        except ValueError as error:
            raise CampaignError(f"{run.title}, condition {condition}: {error}") from error


def merged(campaign: Campaign, variant: Variant, arm: Arm) -> Settings:
    """Return the settings of an arm in a variant; the more special ones win."""
    own = {} if campaign.iterations is None else {"iterations": campaign.iterations}
    sources = (campaign.overrides, campaign.variant_overrides(variant), arm.overrides)
    settings: Settings = {"threads": 1, **own}
    for source in sources:
        settings |= flatten(source)
    return settings
