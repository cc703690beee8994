"""From a campaign of walking policies to its runs: folders, configs, commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from prism_motor.campaigns.config import Arm, Campaign, CampaignError, Evaluation, Variant
from prism_motor.campaigns.planned import PlannedRun, Settings, refuse_differences
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.config import TrainConfig
from prism_motor.locomotion.presets import make_config
from prism_motor.runs import from_dict, to_dict
from prism_motor.runs.configs import flatten
from prism_motor.train.walking_evaluations import Evaluations

UNNAMED = Variant("")
"""The variant of a campaign without any."""

EVALUATION_COST = 0.4
"""Cost of a sample of an evaluation, in samples of training; a guess until one was measured."""


@dataclass(frozen=True)
class LocomotionRun(PlannedRun):
    """A policy that learns to walk."""

    actor: str
    """Kind of policy network."""
    overrides: Settings
    """What differs from the preset, all sources together."""
    config: TrainConfig
    """The resolved config."""
    evaluation: Evaluation | None = None
    """What is evaluated after training; ``None`` for tuning runs."""

    @property
    def total(self) -> int:
        """Policy updates that are wanted."""
        return self.config.iterations

    @property
    def evaluations(self) -> int:
        """Evaluations that are wanted: conditions times seeds."""
        if self.evaluation is None:
            return 0
        return len(self.evaluation.conditions) * len(self.evaluation.seeds)

    def train_command(self, resume: bool) -> list[str]:
        """Return the command that trains the run, or goes on with it."""
        words = [sys.executable, "-m", "prism_motor.cli", "train", "locomotion"]
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
        words = [sys.executable, "-m", "prism_motor.cli", "eval", str(self.path)]
        words += ["--conditions", *chosen.conditions, "--seeds", *map(str, chosen.seeds)]
        words += ["--envs", str(chosen.envs), "--episodes", str(chosen.episodes)]
        return [*words, "--checkpoint", str(self.config.iterations)]

    def check_config(self, path: Path) -> None:
        """Refuse a run folder that is not of the planned config."""
        file = path / "config.json"
        if not file.is_file():
            return  # cut before it began, or no run: ``clear_unstarted`` looks closer
        try:
            found = to_dict(from_dict(TrainConfig, json.loads(file.read_text()), str(file)))
        except ValueError as error:
            raise CampaignError(f"{file} is not of this version of prism: {error}") from error
        refuse_differences(path, found, json.loads(json.dumps(to_dict(self.config))))

    def count_evaluations(self) -> int:
        """Return how many evaluations are of this protocol and these weights."""
        if self.evaluation is None or not (self.path / "evaluations").is_dir():
            return 0
        wanted = self.evaluation
        stored = Evaluations(self.path, wanted.protocol(), self.config.iterations)
        pairs = [(condition, seed) for condition in wanted.conditions for seed in wanted.seeds]
        return sum(stored.read(*pair) is not None for pair in pairs)

    def guess_evaluation(self, update: float) -> float:
        """Guess the seconds of an evaluation from those of an update."""
        if self.evaluation is None:
            return 0.0
        samples = self.evaluation.envs * self.evaluation.episodes * self.config.task.episode_steps
        return EVALUATION_COST * samples * update / self.config.samples_per_iteration


def plan_runs(
    campaign: Campaign, folder: Path, winners: Mapping[str, Settings | None]
) -> list[LocomotionRun]:
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
) -> LocomotionRun:
    """Resolve the config of one run and put it in its place inside the campaign's folder."""
    try:
        config = _resolve(campaign.preset, arm.actor, arm.name, json.dumps(overrides))
    except (ValueError, TypeError) as error:
        raise CampaignError(f"{place}: {error}") from error
    log = folder / "logs" / place.with_name(f"{place.name}.log")
    config = replace(config, seed=seed)
    return LocomotionRun(
        folder / place, log, variant.name, arm.name, seed, arm.actor, overrides, config
    )


@cache
def _resolve(preset: str, actor: str, name: str, overrides: str) -> TrainConfig:
    """Make a config; cached, because matching an MLP to a task takes a while."""
    return make_config(preset, actor, name=name, overrides=json.loads(overrides))


def _check_conditions(run: LocomotionRun) -> None:
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
