"""From run folders to walkers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from prism_motor._checks import InputError
from prism_motor.analysis.live import TopInteractions
from prism_motor.analysis.recording import record
from prism_motor.arms import arm_colours
from prism_motor.locomotion.domain import LOCOMOTION
from prism_motor.locomotion.policy import WalkingPolicy
from prism_motor.locomotion.task import TaskConfig
from prism_motor.viewer.walking.walker import Walker

_PRODUCTS = 6
"""Products shown per policy."""
_ROBOTS, _STEPS = 16, 64
"""Robots and control steps used to choose the products."""


def load_walkers(
    runs: Sequence[Path], device: str | None = None
) -> list[tuple[Walker, TopInteractions | None]]:
    """Load policies, each with a walker and its strongest products, if it has any.

    Args:
        runs: One or two run folders or names of shipped policies.
        device: Where the policies compute; default: where they were trained, or the CPU.
    """
    if not 1 <= len(runs) <= 2:
        raise InputError(f"One or two policies can be watched, got {len(runs)} runs.")
    policies = [LOCOMOTION.place_policy(run, device=device) for run in runs]
    names = [run.resolve().name for run in runs]
    if len(set(names)) < len(names):
        names = [f"{name} ({i})" for i, name in enumerate(names, start=1)]
    arms = [policy.config.arm for policy in policies]
    # Two policies of the same arm are coloured by name.
    keys = arms if len(set(arms)) == len(arms) else [arms[0], *names[1:]]
    colours = arm_colours(keys)
    return [
        (Walker(name, policy, _velocity_task(policy), colour=colours[key]), _products(policy))
        for name, policy, key in zip(names, policies, keys, strict=True)
    ]


def _velocity_task(policy: WalkingPolicy) -> TaskConfig:
    """Return the task of a policy that can be told where to walk."""
    task = policy.config.task
    if not isinstance(task, TaskConfig):
        raise InputError(
            f"prism play tells robots where to walk, but the task of {policy.config.arm} is of "
            f"kind {task.kind!r}, which has no commands. Record a video instead: prism video RUN."
        )
    return task


def _products(policy: WalkingPolicy) -> TopInteractions | None:
    try:
        TopInteractions(policy, 1)
    except InputError:  # a policy without products
        return None
    task = policy.config.task
    rollout = record(policy, task, seed=1, envs=_ROBOTS, steps=_STEPS, features=False)
    return TopInteractions(policy, _PRODUCTS, torch.from_numpy(rollout.observations.values))
