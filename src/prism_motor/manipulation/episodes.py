"""Runs single episodes of an evaluation, in this process or in a worker."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from prism_motor.manipulation.compliance import ComplianceCorrector, find_compliance
from prism_motor.manipulation.data import environment_of
from prism_motor.manipulation.diffusion.policy import HandlingPolicy, PolicyActor, load_policy
from prism_motor.manipulation.rollout import HandlingOutcome, find_perturbation, run_episode
from prism_motor.runs.atomic import atomic_file
from prism_motor.runs.layout import EVALUATIONS, VIDEOS

if TYPE_CHECKING:
    from prism_motor.manipulation import workers as pool
    from prism_motor.manipulation.config import HandlingEvaluation
    from prism_motor.manipulation.environment import Environment, Image

SEEDS_APART = 1000
"""Number of initial states reserved per evaluation seed."""


@dataclass(frozen=True, kw_only=True)
class HandlingEpisode(HandlingOutcome):
    """One evaluated episode."""

    KEY: ClassVar = ("initial_state",)

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

    def trace(self, state: int) -> Path:
        """Return the file for forces and motion from an initial state."""
        return self.run / EVALUATIONS / f"{self.name}.traces" / f"{self.step}-{state:03d}.npz"

    def video(self, state: int) -> Path:
        """Return the file for the video from an initial state."""
        return self.run / VIDEOS / f"{self.step:08d}-{self.name}-{state:03d}.mp4"


class EpisodeRunner:
    """Runs episodes of one policy under one condition and seed.

    Args:
        policy: The policy.
        environment: The environment.
        condition: Name of a perturbation.
        seed: Evaluation seed.
        evaluation: How episodes are run, and what is written besides their measures.
        files: Paths of these files.
    """

    def __init__(
        self,
        policy: HandlingPolicy,
        environment: Environment,
        *,
        condition: str,
        seed: int,
        evaluation: HandlingEvaluation,
        files: EpisodeFiles,
    ) -> None:
        torch.set_num_threads(evaluation.threads)
        self.actor, self.environment = PolicyActor(policy), environment
        self.perturbation, self.seed = find_perturbation(condition), seed
        self.evaluation, self.files = evaluation, files
        self.corrector = find_corrector(evaluation.corrector)

    def __call__(self, episode: pool.EpisodeJob) -> HandlingEpisode:
        """Run from one initial state; traces and videos are written here."""
        state = episode.initial_state
        assert state is not None
        images: list[Image] = []
        recorded = state < self.evaluation.videos
        outcome, trace = run_episode(
            self.environment,
            self.actor,
            initial_state=state,
            seed=SEEDS_APART * self.seed + state,
            perturbation=self.perturbation,
            corrector=self.corrector,
            linger=self.evaluation.linger,
            on_frame=images.append if recorded else None,
        )
        if self.evaluation.traces:
            _write_arrays(self.files.trace(state), asdict(trace))
        if recorded:
            _write_video(self.files.video(state), images, self.environment.control_seconds)
        return HandlingEpisode(**asdict(outcome), initial_state=state)


def find_corrector(name: str) -> ComplianceCorrector | None:
    """Return a corrector of actions by name; ``None`` for ``none``."""
    return None if name == "none" else ComplianceCorrector(find_compliance(name))


def load_runner(path: Path, step: int, **options: Any) -> EpisodeRunner:
    """Make a runner in a worker process."""
    policy = load_policy(path, step)
    scene = environment_of(policy.config, options["evaluation"].stiffness)
    return EpisodeRunner(policy, scene, **options)


def _write_video(file: Path, images: list[Image], seconds: float) -> None:
    from prism_motor.sim.video_files import write_video

    # Above 30 images per second, skip some: a video at 80 is hard to play.
    skip = max(1, round(1 / seconds / 30))
    write_video(file, images[::skip], 1 / seconds / skip)


def _write_arrays(file: Path, arrays: dict[str, Any]) -> None:
    with atomic_file(file) as stream:
        np.savez_compressed(stream, **arrays)
