"""The policies that an analysis compares, and why some of them had to be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prism.learn.evaluations import hash_weights
from prism.learn.policy import Policy, load_policy
from prism.locomotion.config import TaskConfig
from prism.runs import RunError


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
    if not paths:
        raise ValueError("Give at least one run folder.")
    if len({path.resolve() for path in paths}) < len(paths):
        raise ValueError(f"Give every run once, got: {', '.join(map(str, paths))}.")
    found: list[Subject] = []
    left_out: list[str] = []
    for path in paths:
        try:
            policy = load_policy(path, checkpoint)
        except (RunError, ValueError) as error:
            left_out.append(f"{path} is left out: {error}")
            continue
        found.append(Subject(path, policy, policy.config.arm))
    if not found:
        raise RunError("There is no policy to analyse. " + " ".join(left_out))
    return _name_apart(found), left_out


def _name_apart(subjects: list[Subject]) -> list[Subject]:
    """Call the runs of an arm by their folders if more than the training seed differs."""
    kinds: dict[str, set[str]] = {}
    seeds: dict[str, list[int]] = {}
    for subject in subjects:
        policy = subject.policy
        config = replace(policy.config, seed=0, threads=1, iterations=1)  # what does not matter
        kinds.setdefault(config.arm, set()).add(repr((config, policy.step)))
        seeds.setdefault(config.arm, []).append(policy.config.seed)
    mixed = {a for a in kinds if len(kinds[a]) > 1 or len(set(seeds[a])) < len(seeds[a])}
    arms = [s.policy.config.arm for s in subjects]
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
