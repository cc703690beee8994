"""A probe study: record, cut windows, and probe every feature of every policy on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from prism.analysis.features import feature_names, read_features
from prism.analysis.probe_fit import (
    cross_predict,
    folds_at_random,
    folds_by_robot,
    moments,
)
from prism.analysis.probe_windows import Windows, cut_windows, join_windows
from prism.analysis.recording import record
from prism.analysis.subjects import Subject
from prism.learn.algorithm import make_actor
from prism.learn.policy import Policy
from prism.locomotion.conditions import find_condition
from prism.locomotion.config import TaskConfig
from prism.nn.checks import check_size

ANY_ARM = "any"
"""Arm of features that are the same for all: the raw observation on shared windows."""

UNTRAINED = " (untrained)"
"""End of the name of an arm whose networks have random weights."""

_PUSHES = {"push_every": 1.0, "push_velocity": 0.2, "push_angular_velocity": 0.4}
"""Pushes during the recording, as in the paper's protocol: s, m/s, rad/s."""


@dataclass(frozen=True)
class ProbeConfig:
    """How probes are made."""

    own: bool = False
    """Whether every policy is probed on its own states instead of the same for all."""
    condition: str = "pushes"
    """Condition of the recording; pushes come every second."""
    horizon: int = 5
    """Control steps that targets look ahead."""
    envs: int = 96
    """Robots: of every policy on its own states, else of all policies together."""
    seconds: float = 8.0
    """How long they walk."""
    seed: int = 201
    """Seed of the recording and of the split."""
    untrained: bool = False
    """Whether every network is also probed with random weights."""
    directions: int | None = None
    """Principal directions of every feature that are used, so that wide ones have no advantage."""
    threads: int = 1
    """Threads of the simulation."""

    def __post_init__(self) -> None:
        find_condition(self.condition)
        for name in ("horizon", "envs", "threads"):
            check_size("Probes", name, getattr(self, name))
        if self.directions is not None:
            check_size("Probes", "directions", self.directions)
        if not 1 <= self.seconds <= 600:
            raise ValueError(f"Probes: seconds must be from 1 to 600, got {self.seconds}.")
        if self.seed < 0:
            raise ValueError(f"Probes: the seed must not be negative, got {self.seed}.")


@dataclass(frozen=True)
class Probe:
    """One feature of one policy, probed for all targets."""

    arm: str
    """Arm of the policy, or :data:`ANY_ARM`."""
    training_seed: int | None
    """Training seed of the policy; none for features that are the same for all."""
    features: str
    """Name of the feature."""
    width: int
    """How many numbers the feature has."""
    rank: int
    """How many of its directions were used: all independent ones, unless told otherwise."""
    sums: np.ndarray
    """Moments of every robot, predicted by probes that never saw it, (robots, targets, 7)."""
    leaky_sums: np.ndarray
    """The same when windows are split at random, so that probes have seen every robot."""


@dataclass(frozen=True)
class Study:
    """All probes, and what they were made on."""

    probes: list[Probe]
    """One per policy and feature."""
    windows: int
    """Windows, of one policy if every policy has its own."""
    episodes: int
    """Episodes that they come from."""
    robots: int
    """Robots that they come from."""


def count_work(subjects: Sequence[Subject], config: ProbeConfig, sources: int) -> int:
    """Return how often a study reports."""
    dt = subjects[0].policy.config.task.simulation.control_dt
    fits = sum(len(feature_names(s.policy)) for s in subjects) * (2 if config.untrained else 1)
    return sources * round(config.seconds / dt) + fits


def run_study(
    subjects: Sequence[Subject],
    config: ProbeConfig,
    sources: Sequence[Subject],
    report: Callable[[], None] | None = None,
) -> Study:
    """Record, and probe every policy.

    Args:
        subjects: Policies to probe.
        config: How.
        sources: Policies that walk for the shared windows, in equal shares; not used when every
            policy is probed on its own states.
        report: Called after every piece of work.
    """
    if config.own:
        studies = [
            _probe([one], _record([one], config, config.envs, report), config, report)
            for one in subjects
        ]
        return replace(studies[0], probes=[p for study in studies for p in study.probes])
    share = max(4, -(-config.envs // len(sources)))
    return _probe(subjects, _record(sources, config, share, report), config, report)


def _record(
    sources: Sequence[Subject],
    config: ProbeConfig,
    envs: int,
    report: Callable[[], None] | None,
) -> Windows:
    """Let policies walk on the task of the first, each on its own seed, and cut windows."""
    task = with_pushes(sources[0].policy.config.task)
    parts = []
    for i, source in enumerate(sources):
        rollout = record(
            source.policy,
            task,
            config.condition,
            seed=config.seed + i,
            envs=envs,
            steps=round(config.seconds / task.simulation.control_dt),
            features=False,
            threads=config.threads,
            report=report,
        )
        parts.append(cut_windows(rollout, config.horizon))
    return join_windows(parts)


def with_pushes(task: TaskConfig) -> TaskConfig:
    """Return the task with the pushes of the protocol, for conditions that have pushes."""
    return replace(task, randomisation=replace(task.randomisation, **_PUSHES))


def _probe(
    subjects: Sequence[Subject],
    windows: Windows,
    config: ProbeConfig,
    report: Callable[[], None] | None,
) -> Study:
    fold = folds_by_robot(windows.robot, config.seed)
    leaky_fold = folds_at_random(len(windows), config.seed)
    probes: dict[tuple[str, int | None, str], Probe] = {}
    policies = [(s.arm, s.policy) for s in subjects]
    if config.untrained:
        policies += [(s.arm + UNTRAINED, untrained(s.policy)) for s in subjects]
    for arm, policy in policies:
        for name, values in read_features(policy, windows.observations).items():
            shared = name == "raw" and not config.own
            key = (ANY_ARM, None, name) if shared else (arm, policy.config.seed, name)
            if key not in probes:
                found = cross_predict(values, windows.targets, fold, config.directions)
                leaky = cross_predict(values, windows.targets, leaky_fold, config.directions)
                probes[key] = Probe(
                    *key,
                    width=values.shape[1],
                    rank=found.rank,
                    sums=moments(found, windows.robot),
                    leaky_sums=moments(leaky, windows.robot),
                )
            if report is not None:
                report()
    return Study(
        probes=list(probes.values()),
        windows=len(windows),
        episodes=windows.episodes,
        robots=len(np.unique(windows.robot)),
    )


def untrained(policy: Policy) -> Policy:
    """Return the same network with random weights and the trained normaliser."""
    torch.manual_seed(policy.config.seed)
    actor = make_actor(policy.config)
    actor.obs_normalizer.load_state_dict(policy.actor.obs_normalizer.state_dict())
    return Policy(policy.config, 0, actor.eval(), actor.as_onnx(verbose=False).eval())
