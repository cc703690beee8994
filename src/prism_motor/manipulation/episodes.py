"""Runs single episodes of an evaluation, in this process or in a worker."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from prism_motor.manipulation.compliance import ComplianceCorrector, find_compliance
from prism_motor.manipulation.data import environment_of
from prism_motor.manipulation.policy import HandlingPolicy, check_fit, load_policy
from prism_motor.manipulation.rollout import HandlingOutcome, find_perturbation, run_episode
from prism_motor.runs.atomic import atomic_file
from prism_motor.runs.layout import EVALUATIONS, VIDEOS

if TYPE_CHECKING:
    from prism_motor.manipulation import workers as pool
    from prism_motor.manipulation.config import HandlingEvaluation
    from prism_motor.manipulation.environment import Environment, Image
    from prism_motor.manipulation.tasks import Task

SEEDS_APART = 1000
"""Number of initial states reserved per evaluation seed."""


@dataclass(frozen=True, kw_only=True)
class HandlingEpisode(HandlingOutcome):
    """One evaluated episode."""

    KEY: ClassVar = ("suite", "task", "initial_state")

    suite: str
    """Suite of its task."""
    task: str
    """Name of its task."""
    initial_state: int
    """Which of the task's fixed initial states it started from."""


@dataclass(frozen=True)
class EpisodeFiles:
    """Paths of the traces and videos of an evaluation."""

    run: Path
    """The run folder."""
    name: str
    """Name of the evaluation."""
    step: int
    """Number of updates the policy was trained for."""
    several: bool = False
    """Whether the policy has several tasks, which are part of the names."""

    def trace(self, task: Task, state: int) -> Path:
        """Return the file for forces and motion from an initial state of a task."""
        folder = self.run / EVALUATIONS / f"{self.name}.traces"
        return folder / f"{self.step}-{self._episode(task, state)}.npz"

    def video(self, task: Task, state: int) -> Path:
        """Return the file for the video from an initial state of a task."""
        episode = self._episode(task, state)
        return self.run / VIDEOS / f"{self.step:08d}-{self.name}-{episode}.mp4"

    def _episode(self, task: Task, state: int) -> str:
        return f"{task.suite}-{task.index}-{state:03d}" if self.several else f"{state:03d}"


class Scenes:
    """The environments of a policy's tasks, one at a time, because each takes memory.

    Args:
        policy: The policy.
        stiffness: Kp of the arm's controller; default: the suite's.
    """

    def __init__(self, policy: HandlingPolicy, stiffness: float | None) -> None:
        self._policy, self._stiffness = policy, stiffness
        self._open: Environment | None = None

    def of(self, task: Task) -> Environment:
        """Return the environment of a task."""
        if self._open is None or self._open.task.key != task.key:
            self.close()
            self._open = environment_of(self._policy.config, self._stiffness, task)
            check_fit(self._policy, self._open)
        return self._open

    def close(self) -> None:
        """Free the simulator."""
        if self._open is not None:
            self._open.close()
            self._open = None


class EpisodeRunner:
    """Runs episodes of one policy under one condition and seed.

    Args:
        policy: The policy.
        scenes: The environments of its tasks.
        condition: Name of a perturbation.
        seed: Evaluation seed.
        evaluation: How episodes are run, and what is written besides their measures.
        files: Paths of these files.
    """

    def __init__(
        self,
        policy: HandlingPolicy,
        scenes: Scenes,
        *,
        condition: str,
        seed: int,
        evaluation: HandlingEvaluation,
        files: EpisodeFiles,
    ) -> None:
        torch.set_num_threads(evaluation.threads)
        self.policy, self.scenes = policy, scenes
        self.perturbation, self.seed = find_perturbation(condition), seed
        self.evaluation, self.files = evaluation, files
        self.corrector = find_corrector(evaluation.corrector)

    def __call__(self, episode: pool.EpisodeJob) -> HandlingEpisode:
        """Run from one initial state; traces and videos are written here."""
        task, state = episode.task, episode.initial_state
        assert state is not None
        environment = self.scenes.of(task)
        images: list[Image] = []
        recorded = state < self.evaluation.videos
        outcome, trace = run_episode(
            environment,
            self.policy.acting_on(task),
            initial_state=state,
            seed=SEEDS_APART * self.seed + state,
            perturbation=self.perturbation,
            corrector=self.corrector,
            linger=self.evaluation.linger,
            on_frame=images.append if recorded else None,
        )
        if self.evaluation.traces:
            _write_arrays(self.files.trace(task, state), asdict(trace))
        if recorded:
            _write_video(self.files.video(task, state), images, environment.control_seconds)
        return HandlingEpisode(
            **asdict(outcome), suite=task.suite, task=task.name, initial_state=state
        )


def find_corrector(name: str) -> ComplianceCorrector | None:
    """Return a corrector of actions by name; ``None`` for ``none``."""
    return None if name == "none" else ComplianceCorrector(find_compliance(name))


def load_runner(path: Path, step: int, **options: Any) -> EpisodeRunner:
    """Make a runner in a worker process."""
    policy = load_policy(path, step).to(options["evaluation"].device or "cpu")
    return EpisodeRunner(policy, Scenes(policy, options["evaluation"].stiffness), **options)


def _write_video(file: Path, images: list[Image], seconds: float) -> None:
    from prism_motor.sim.video_files import write_video

    # Above 30 images per second, skip some: a video at 80 is hard to play.
    skip = max(1, round(1 / seconds / 30))
    write_video(file, images[::skip], 1 / seconds / skip)


def _write_arrays(file: Path, arrays: dict[str, Any]) -> None:
    with atomic_file(file) as stream:
        np.savez_compressed(stream, **arrays)
