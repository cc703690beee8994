"""A probe study of walking: record, cut windows, and probe every feature of every policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from prism_motor._errors import InputError
from prism_motor.analysis.features import feature_names, read_features
from prism_motor.analysis.probe_core import (
    UNTRAINED,
    FitConfig,
    Network,
    Study,
    fit_probes,
    join_studies,
)
from prism_motor.analysis.probe_data import Windows, join_windows
from prism_motor.analysis.probe_windows import WALKING, cut_windows
from prism_motor.analysis.recording import record
from prism_motor.analysis.subjects import Subject
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.policy import Policy
from prism_motor.locomotion.ppo import make_actor
from prism_motor.locomotion.task import TaskConfig
from prism_motor.nn.checks import check_size

_PUSHES = {"push_every": 1.0, "push_velocity": 0.2, "push_angular_velocity": 0.4}
"""Pushes during the recording, as in the paper's protocol: s, m/s, rad/s."""


@dataclass(frozen=True)
class ProbeConfig(FitConfig):
    """How probes of walking are made."""

    condition: str = "pushes"
    """Condition of the recording; pushes come every second."""
    envs: int = 96
    """Robots: of every policy on its own states, else of all policies together."""
    seconds: float = 8.0
    """How long they walk."""
    threads: int = 1
    """Threads of the simulation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        find_condition(self.condition)
        for name in ("envs", "threads"):
            check_size("Probes", name, getattr(self, name))
        if not 1 <= self.seconds <= 600:
            raise InputError(f"Probes: seconds must be from 1 to 600, got {self.seconds}.")

    def origin(self, study: Study) -> str:
        """Say where the windows of a study come from."""
        return f"{study.episodes} episodes of {study.units} robots (condition {self.condition})"


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
        return join_studies(
            [
                _probe([one], _record([one], config, config.envs, report), config, report)
                for one in subjects
            ]
        )
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
    policies = [(s.arm, s.policy) for s in subjects]
    if config.untrained:
        policies += [(s.arm + UNTRAINED, untrained(s.policy)) for s in subjects]
    networks = [
        Network(arm, policy.config.seed, partial(read_features, policy)) for arm, policy in policies
    ]
    return fit_probes(networks, windows, WALKING, config, report)


def untrained(policy: Policy) -> Policy:
    """Return the same network with random weights and the trained normaliser."""
    torch.manual_seed(policy.config.seed)
    actor = make_actor(policy.config)
    actor.obs_normalizer.load_state_dict(policy.actor.obs_normalizer.state_dict())
    return Policy(policy.config, 0, actor.eval(), actor.as_onnx(verbose=False).eval())
