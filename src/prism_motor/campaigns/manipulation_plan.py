"""From a campaign of policies that learn from demonstrations to its runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.manipulation import (
    ImitationArm,
    ImitationEvaluation,
    ManipulationCampaign,
    TaskEntry,
)
from prism_motor.campaigns.planned import PlannedRun, Settings, refuse_differences
from prism_motor.manipulation.config import ImitationConfig, TaskConfig
from prism_motor.manipulation.demonstrations.dataset import ORIGIN
from prism_motor.manipulation.presets import make_config
from prism_motor.manipulation.tasks import find_task
from prism_motor.runs import from_dict, to_dict
from prism_motor.runs.configs import flatten

EPISODE_SECONDS = 5.0
"""Length of an evaluated episode; a guess until an evaluation was measured."""


@dataclass(frozen=True)
class DemonstrationRun(PlannedRun):
    """The demonstrations of a task, recorded once for all arms."""

    suite: str
    """The benchmark."""
    task: str
    """Name of the task."""
    episodes: int
    """How many."""
    image_size: int
    """Side of the images, pixels; 0 for none."""
    noise: float
    """Standard deviation of noise on the hand's actions."""

    verb: ClassVar[str] = "record"
    unit: ClassVar[str] = "demonstration"

    @property
    def total(self) -> int:
        """Demonstrations that are wanted."""
        return self.episodes

    def train_command(self, resume: bool) -> list[str]:
        """Return the command that records what is missing."""
        words = [sys.executable, "-m", "prism_motor.cli", "demos", "--suite", self.suite]
        words += ["--task", self.task, "--episodes", str(self.episodes), "--seed", str(self.seed)]
        words += ["--image-size", str(self.image_size), "--noise", f"{self.noise:g}"]
        return [*words, "--out", str(self.path)]

    def check_config(self, path: Path) -> None:
        """Refuse a dataset of something else."""
        try:
            found = json.loads((path / ORIGIN).read_text())["collection"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CampaignError(f"{path} is in the way: it is not of prism demos.") from error
        wanted = {key: getattr(self, key) for key in _KEYS}
        # Datasets from before there was noise do not name it.
        found = {"noise": 0.0} | found
        refuse_differences(path, {key: found.get(key) for key in _KEYS}, wanted)

    def count_updates(self) -> int:
        """Return the demonstrations that are recorded."""
        if self.path.exists():
            return self.episodes
        # All of them, but not written as a dataset yet, are not enough.
        return min(self.episodes - 1, len(self._recorded()))

    def live_updates(self) -> tuple[int, float] | None:
        """Return how many are recorded, and how long that took."""
        times = [file.stat().st_mtime for file in self._recorded()]
        return (len(times), max(times) - min(times)) if len(times) > 1 else None

    def _recorded(self) -> list[Path]:
        return list(self.path.with_name(f"{self.path.name}.partial").glob("*.npz"))


_KEYS = ("suite", "task", "episodes", "image_size", "seed", "noise")
"""What makes two datasets the same."""


@dataclass(frozen=True)
class ImitationRun(PlannedRun):
    """A policy that learns from demonstrations."""

    overrides: Settings
    """What differs from the preset, all sources together."""
    config: ImitationConfig
    """Its settings; sizes of state, objects and action are known when it has begun."""
    evaluation: ImitationEvaluation
    """What is evaluated after training."""

    @property
    def total(self) -> int:
        """Updates that are wanted."""
        return self.config.steps

    @property
    def evaluations(self) -> int:
        """Evaluations that are wanted: conditions times seeds."""
        return len(self.evaluation.conditions) * len(self.evaluation.seeds)

    def train_command(self, resume: bool) -> list[str]:
        """Return the command that trains the run, or goes on with it."""
        words = [sys.executable, "-m", "prism_motor.cli", "train", "manipulation"]
        if resume:
            return [*words, "--resume", str(self.path)]
        config = self.config
        words += ["--suite", config.task.suite, "--task", config.task.name]
        words += ["--preset", config.preset, "--conditioner", config.conditioner.kind]
        words += ["--arm", self.arm, "--demos", config.demos]
        words += ["--seed", str(self.seed), "--out", str(self.path)]
        for key, value in self.overrides.items():
            words += ["--set", f"{key}={json.dumps(value)}"]
        return words

    def evaluate_command(self) -> list[str]:
        """Return the command that does the evaluations that are missing."""
        chosen = self.evaluation
        words = [sys.executable, "-m", "prism_motor.cli", "eval", str(self.path)]
        words += ["--conditions", *chosen.conditions, "--seeds", *map(str, chosen.seeds)]
        words += ["--episodes", str(chosen.episodes), "--checkpoint", str(self.total)]
        words += [] if chosen.stiffness is None else ["--stiffness", f"{chosen.stiffness:g}"]
        return words

    def check_config(self, path: Path) -> None:
        """Refuse a run folder that is not of the planned settings."""
        file = path / "config.json"
        if not file.is_file():
            return  # cut before it began, or no run: ``clear_unstarted`` looks closer
        try:
            found = from_dict(ImitationConfig, json.loads(file.read_text()), str(file))
        except ValueError as error:
            raise CampaignError(f"{file} is not of this version of prism: {error}") from error
        sizes = {name: getattr(found.task, name) for name in ("state", "objects", "action")}
        task = replace(self.config.task, **sizes, cameras=found.task.cameras)
        wanted = replace(self.config, task=task)
        recorded = self.path.parents[1] / "demos" / self.variant
        if wanted.demos == str(recorded) and Path(found.demos).parts[-2:] == recorded.parts[-2:]:
            wanted = replace(wanted, demos=found.demos)  # the campaign's folder may have moved
        refuse_differences(
            path, json.loads(json.dumps(to_dict(found))), json.loads(json.dumps(to_dict(wanted)))
        )

    def count_evaluations(self) -> int:
        """Return how many evaluations have all their episodes, of the last checkpoint."""
        chosen = self.evaluation
        ending = "" if chosen.stiffness is None else f"+kp{chosen.stiffness:g}"
        files = [f"{name}{ending}-{seed}" for name in chosen.conditions for seed in chosen.seeds]
        return sum(self._is_done(self.path / "evaluations" / f"{file}.json") for file in files)

    def _is_done(self, file: Path) -> bool:
        try:
            data = json.loads(file.read_text())
            states = {row["initial_state"] for row in data["episodes"]}
            wanted = set(range(self.evaluation.episodes))
            return data["checkpoint"] == self.total and states >= wanted
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def guess_evaluation(self, update: float) -> float:
        """Guess the seconds of an evaluation."""
        return EPISODE_SECONDS * self.evaluation.episodes


def plan_demonstrations(campaign: ManipulationCampaign, folder: Path) -> list[DemonstrationRun]:
    """Return what has to be recorded, a dataset for every task without one."""
    return [
        DemonstrationRun(
            path=folder / "demos" / entry.name,
            log=folder / "logs" / "demos" / f"{entry.name}.log",
            variant=entry.name,
            arm="",
            seed=campaign.demonstrations.seed,
            suite=entry.suite,
            task=find_task(entry.suite, entry.task).name,
            episodes=campaign.demonstrations.episodes,
            image_size=_image_size(campaign, entry),
            noise=campaign.demonstrations.noise,
        )
        for entry in campaign.tasks
        if entry.demos is None
    ]


def plan_imitation(
    campaign: ManipulationCampaign, folder: Path, missing: Collection[str] = ()
) -> list[ImitationRun]:
    """Return the reported runs: all tasks and arms with a seed before the next.

    Args:
        campaign: The campaign.
        folder: Its folder.
        missing: Names of tasks whose demonstrations are not there yet.
    """
    runs = []
    for seed in campaign.seeds:
        for entry in campaign.tasks:
            for arm in campaign.arms:
                place = Path(entry.name) / f"{arm.name}-{seed}"
                overrides = _merged(campaign, entry, arm)
                runs.append(
                    ImitationRun(
                        path=folder / place,
                        log=folder / "logs" / place.with_name(f"{place.name}.log"),
                        variant=entry.name,
                        arm=arm.name,
                        seed=seed,
                        overrides=overrides,
                        config=_resolve(campaign, folder, entry, arm, seed, overrides),
                        evaluation=campaign.evaluation,
                        waiting=entry.name in missing,
                    )
                )
    return runs


def _resolve(
    campaign: ManipulationCampaign,
    folder: Path,
    entry: TaskEntry,
    arm: ImitationArm,
    seed: int,
    overrides: Settings,
) -> ImitationConfig:
    """Make a config; the sizes of the task's signals are left open."""
    task = TaskConfig(entry.suite, find_task(entry.suite, entry.task).name, 1, 1, 1, ())
    demos = entry.demos or str(folder / "demos" / entry.name)
    try:
        return make_config(
            campaign.preset, arm.conditioner, task, demos, seed=seed, name=arm.name,
            overrides=overrides,
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        raise CampaignError(f"{entry.name}/{arm.name}-{seed}: {error}") from error


def _merged(campaign: ManipulationCampaign, entry: TaskEntry, arm: ImitationArm) -> Settings:
    """Return the settings of an arm on a task; the more special ones win."""
    settings: Settings = {"threads": 1}
    for source in (campaign.overrides, entry.overrides, arm.overrides):
        settings |= flatten(source)
    return settings


def _image_size(campaign: ManipulationCampaign, entry: TaskEntry) -> int:
    """Return the images that the arms of a task look at; all of them must look at the same."""
    folder = Path()
    sizes = set()
    for arm in campaign.arms:
        network = _resolve(campaign, folder, entry, arm, 0, _merged(campaign, entry, arm)).network
        sizes.add(network.image_size if network.inputs == "images" else 0)
    if len(sizes) > 1:
        raise CampaignError(
            f"The arms of {entry.name} look at images of different sizes ({sorted(sizes)}; 0: "
            "none), so they cannot share demonstrations. Give the task demos, or the arms one size."
        )
    return sizes.pop()
