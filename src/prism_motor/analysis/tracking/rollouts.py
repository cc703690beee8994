"""What a tracking policy sees, and under which latent, along pieces of clips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from prism_motor.analysis.study import Report, silent
from prism_motor.tracking.evaluation import (
    Piece,
    TrackedPiece,
    act_in_blocks,
    prompt_clips,
    track,
)
from prism_motor.tracking.references import References, load_references

if TYPE_CHECKING:
    from prism_motor.tracking.loading import LoadedPolicy

Act = Callable[[Tensor, Tensor], Tensor]
"""From raw observations (N, size) and latents (N, d) to actions (N, joints)."""


@dataclass(frozen=True)
class TrackingRows:
    """Control steps of a rollout, one after the other."""

    robots: np.ndarray
    """Which piece each is of (rows,)."""
    steps: np.ndarray
    """Control steps since its piece began (rows,)."""
    upright: np.ndarray
    """Whether the robot has stood in every frame up to it (rows,)."""
    observations: Tensor
    """Raw observations (rows, size)."""
    latents: Tensor
    """Latents (rows, d)."""

    def take(self, chosen: np.ndarray) -> TrackingRows:
        """Return some rows."""
        index = torch.from_numpy(np.flatnonzero(chosen) if chosen.dtype == bool else chosen)
        return TrackingRows(
            self.robots[chosen], self.steps[chosen], self.upright[chosen],
            self.observations[index], self.latents[index],
        )  # fmt: skip


def read_clips(loaded: LoadedPolicy, motion: str = "") -> References:
    """Return the clips of a policy's training, or another motion."""
    task = loaded.config.task
    return load_references(replace(task, clips=(motion,)) if motion else task)


def follow(
    loaded: LoadedPolicy,
    references: References,
    pieces: Sequence[Piece],
    condition: str,
    *,
    act: Act | None = None,
    seed: int = 0,
    threads: int = 1,
    report: Report = silent,
) -> tuple[TrackingRows, list[TrackedPiece]]:
    """Let a policy track pieces of clips and record what it saw.

    Args:
        loaded: The policy.
        references: The clips.
        pieces: What to track, all at the same time.
        condition: Name of a condition.
        act: What acts instead of the policy itself.
        seed: Seed of whatever is random in the condition.
        threads: Threads of the simulation; they do not change the result.
        report: Called after every control step.
    """
    policy = loaded.policy
    table = prompt_clips(policy, references, loaded.config.task.ahead)
    device = table.device
    seen: list[tuple[Tensor, Tensor]] = []

    def control(observations: Tensor, frames: Tensor) -> Tensor:
        latents = table[frames.to(device)]
        seen.append((observations.clone(), latents.cpu()))
        found = act_in_blocks(act or policy, observations.to(device), latents)
        return found.to(observations.device)

    tracked = track(
        control, loaded.config.task, references, pieces, condition=condition, seed=seed,
        threads=threads, report=report,
    )  # fmt: skip
    robots, steps, upright = [], [], []
    for robot, one in enumerate(tracked):
        stood = np.logical_and.accumulate(one.upright)[:-1]  # before the step, not after it
        robots.append(np.full(len(stood), robot))
        steps.append(np.arange(len(stood)))
        upright.append(stood)
    where = np.concatenate(robots), np.concatenate(steps)
    observations, latents = (torch.stack(values) for values in zip(*seen, strict=True))
    index = torch.from_numpy(where[1]), torch.from_numpy(where[0])
    rows = TrackingRows(*where, np.concatenate(upright), observations[index], latents[index])
    return rows, tracked
