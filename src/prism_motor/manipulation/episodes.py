"""Runs single episodes of an evaluation, here or in a process of their own."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prism_motor.manipulation import workers as pool
from prism_motor.manipulation.data import environment_of
from prism_motor.manipulation.diffusion.policy import Policy, PolicyActor, load_policy
from prism_motor.manipulation.environment import Corrector, Environment, Image
from prism_motor.manipulation.rollout import HandlingOutcome, find_perturbation, run_episode

SEEDS_APART = 1000
"""Initial states that fit between two evaluation seeds."""


@dataclass(frozen=True)
class Protocol:
    """How policies are evaluated, beside the condition and the seed."""

    linger: int = 0
    """Steps to go on after success; they count in traces alone."""
    corrector: str = "none"
    """Name of what changes actions at execution time."""
    settings: dict[str, Any] | None = None
    """Of the corrector, where its name does not say them."""
    stiffness: float | None = None
    """Kp of the arm's controller; default: the suite's own."""

    def known(self) -> dict[str, Any]:
        """Return what is set, for the records."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Extras:
    """What an evaluation leaves behind beside its numbers."""

    traces: bool = False
    """Whether forces, motion and actions of every step are kept."""
    videos: int = 0
    """How many of the first episodes are filmed."""


@dataclass(frozen=True)
class EpisodeFiles:
    """Where traces and films of an evaluation go."""

    run: Path
    """The run folder."""
    name: str
    """Name of the evaluation."""
    step: int
    """Updates that the policy has had."""

    def trace(self, state: int) -> Path:
        """Return the file for forces and motion from an initial state."""
        return self.run / "evaluations" / f"{self.name}.traces" / f"{self.step}-{state:03d}.npz"

    def video(self, state: int) -> Path:
        """Return the file for the film from an initial state."""
        return self.run / "videos" / f"{self.step:08d}-{self.name}-{state:03d}.mp4"


class EpisodeRunner:
    """Runs episodes of one policy under one condition and seed.

    Args:
        policy: Who acts.
        environment: Where.
        condition: Name of a perturbation.
        seed: Evaluation seed.
        protocol: How episodes are run.
        corrector: Changes actions at execution time.
        extras: What else to keep.
        files: Where it goes.
        threads: Threads of torch.
    """

    def __init__(
        self,
        policy: Policy,
        environment: Environment,
        *,
        condition: str,
        seed: int,
        protocol: Protocol,
        corrector: Corrector | None,
        extras: Extras,
        files: EpisodeFiles,
        threads: int,
    ) -> None:
        torch.set_num_threads(threads)
        self.actor, self.environment = PolicyActor(policy), environment
        self.perturbation, self.seed = find_perturbation(condition), seed
        self.protocol, self.corrector = protocol, corrector
        self.extras, self.files = extras, files

    def __call__(self, episode: pool.EpisodeJob) -> HandlingOutcome:
        """Run from one initial state; traces and films are written here."""
        state = episode.initial_state
        assert state is not None
        pictures: list[Image] = []
        filmed = state < self.extras.videos
        outcome, trace = run_episode(
            self.environment,
            self.actor,
            initial_state=state,
            seed=SEEDS_APART * self.seed + state,
            perturbation=self.perturbation,
            corrector=self.corrector,
            linger=self.protocol.linger,
            on_frame=pictures.append if filmed else None,
        )
        if self.extras.traces:
            _write_arrays(self.files.trace(state), asdict(trace))
        if filmed:
            _write_video(self.files.video(state), pictures, self.environment.control_seconds)
        return outcome


def load_runner(path: Path, step: int, **options: Any) -> EpisodeRunner:
    """Make a runner in a process of its own."""
    policy = load_policy(path, step)
    scene = environment_of(policy.config, options["protocol"].stiffness)
    return EpisodeRunner(policy, scene, **options)


def _write_video(file: Path, pictures: list[Image], seconds: float) -> None:
    from prism_motor.sim.video_files import write_video

    # Every other picture above 30 a second: a film of 80 is hard to play.
    skip = max(1, round(1 / seconds / 30))
    write_video(file, pictures[::skip], 1 / seconds / skip)


def _write_arrays(file: Path, arrays: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    temporary.replace(file)
