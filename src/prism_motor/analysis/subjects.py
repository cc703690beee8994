"""The policies that an analysis compares, and why some of them had to be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prism_motor.analysis.comparing import load_each, mixed_arms
from prism_motor.locomotion.policy import Policy, load_policy
from prism_motor.locomotion.task import TaskConfig
from prism_motor.train.walking_evaluations import hash_weights


@dataclass(frozen=True)
class Subject:
    """A policy with the name that tables and figures give it."""

    path: Path
    """Its run folder."""
    policy: Policy
    """The policy."""
    arm: str
    """Arm that it is counted with."""

    @property
    def about(self) -> dict[str, Any]:
        """Where it came from, for the record."""
        config = self.policy.config
        return {
            "run": str(self.path),
            "arm": self.arm,
            "preset": config.preset,
            "training_seed": config.seed,
            "checkpoint": self.policy.step,
            "policy_sha256": hash_weights(self.policy.actor.state_dict()),
        }


def load_subjects(
    paths: Sequence[Path], checkpoint: int | None = None
) -> tuple[list[Subject], list[str]]:
    """Load what can be loaded; return the policies and a sentence about each one left out.

    Args:
        paths: Run folders.
        checkpoint: Which checkpoint; the newest by default.
    """
    found, left_out = load_each(paths, lambda path: load_policy(path, checkpoint))
    subjects = [Subject(path, policy, policy.config.arm) for path, policy in found]
    return _name_apart(subjects), left_out


def _name_apart(subjects: list[Subject]) -> list[Subject]:
    """Call the runs of an arm by their folders if more than the training seed differs."""
    policies = [subject.policy for subject in subjects]
    mixed = mixed_arms(
        (
            p.config.arm,
            (replace(p.config, seed=0, threads=1, iterations=1), p.step),  # the rest matters
            p.config.seed,
        )
        for p in policies
    )
    arms = [policy.config.arm for policy in policies]
    return [
        replace(s, arm=str(s.path) if arm in mixed else arm)
        for s, arm in zip(subjects, arms, strict=True)
    ]


def same_layout(
    subjects: Sequence[Subject], like: Subject | None = None
) -> tuple[list[Subject], list[str]]:
    """Keep the policies that see and move the same; return them and why others are left out.

    Args:
        subjects: The policies.
        like: The one that they must be like; default: the first of them.
    """
    first = like or subjects[0]
    kept: list[Subject] = []
    left_out: list[str] = []
    for subject in subjects:
        differing = _differences(first.policy.config.task, subject.policy.config.task)
        if differing:
            left_out.append(
                f"{subject.path} is left out: its task differs from that of {first.path} in "
                f"{', '.join(differing)}, so they do not see the same observations."
            )
        else:
            kept.append(subject)
    return _name_apart(kept), left_out


def same_robot(subjects: Sequence[Subject]) -> tuple[list[Subject], list[str]]:
    """Keep the policies of the first one's robot; say why others are left out."""
    first = subjects[0]
    robot = first.policy.config.task.robot
    kept = [s for s in subjects if s.policy.config.task.robot == robot]
    left_out = [
        f"{s.path} is left out: it moves the robot {s.policy.config.task.robot}, {first.path} the "
        f"{robot}."
        for s in subjects
        if s not in kept
    ]
    return _name_apart(kept), left_out


_LAYOUT = ("robot", "simulation", "gait", "actions", "observations")
"""Parts of a task that decide what an observation means and what an action does."""


def _differences(one: TaskConfig, other: TaskConfig) -> list[str]:
    # Noise is the condition's to decide.
    one, other = (replace(t, observations=replace(t.observations, noise=0.0)) for t in (one, other))
    return [part for part in _LAYOUT if getattr(one, part) != getattr(other, part)]
