"""Probes of contact: what a conditioner knows about the forces that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch

from prism_motor._checks import InputError
from prism_motor._ranges import between
from prism_motor.analysis.features import read_conditioner
from prism_motor.analysis.probe.finding import make_finding
from prism_motor.analysis.probe.probes import (
    PROBE_HELP,
    ProbeConfig,
    ProbeSet,
    ProbeSubjects,
    ProbeTarget,
    ProbeTargets,
    ProbeWindows,
    join_windows,
    probe_policies,
)
from prism_motor.analysis.study import Finding, Report, Study, silent
from prism_motor.analysis.subjects import Subject, load_same_task
from prism_motor.manipulation.contact import (
    BEFORE,
    THRESHOLD,
    ContactTrace,
    contact_work,
    first_contact,
)
from prism_motor.manipulation.data import environment_of
from prism_motor.manipulation.policy import HandlingPolicy
from prism_motor.manipulation.rollout import run_episode

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment, HandlingActor, Observation

TARGETS = (
    ProbeTarget("contact_impulse", "contact impulse", "log(1 + sum_h F)", "force", True),
    ProbeTarget("contact_work", "contact work", "mean_h F |dx|", "work"),
)
"""Targets of the paper's tables; its work is the sum, which is the same after standardising."""

CONTACT = ProbeTargets(
    TARGETS,
    unit="episode",
    windows=f"windows from {BEFORE} steps before the first contact ({THRESHOLD:g} N) on",
    advice="Record more episodes, or a policy that touches something.",
)
"""Targets of manipulation policies; every episode is held out as a whole."""


@dataclass(frozen=True)
class ContactProbeConfig(ProbeConfig):
    """How probes of contact are made."""

    episodes: Annotated[int, between(1, 100_000)] = 40
    """Random resets; per policy with --own, otherwise in total."""
    task: str = ""
    """Which task of policies that learned several, as SUITE/NUMBER; default: the first."""

    def origin(self, found: ProbeSet) -> str:
        """Describe where the windows come from."""
        return f"{found.episodes} episodes with contact, from random resets"


def probe_contact(
    who: ProbeSubjects,
    config: ContactProbeConfig,
    environment: Environment,
    report: Report = silent,
) -> ProbeSet:
    """Record windows and probe the conditioner of every policy.

    Args:
        who: The policies.
        config: Settings.
        environment: The task of all of them.
        report: Called after every episode and every feature.
    """

    def recorded(subjects: Sequence[Subject]) -> ProbeWindows:
        """Let policies act from random resets, none used twice, and cut windows."""
        episodes = _share(config, len(subjects))
        parts = []
        for number, subject in enumerate(subjects):
            actor = _Watched(subject.policy.acting_on(environment.task))
            steps = subject.policy.config.network.observation_steps
            for k in range(episodes):
                seed = 10_000 * config.seed + episodes * number + k
                _, trace = run_episode(
                    environment, actor, reset_seed=seed, seed=seed, linger=BEFORE
                )
                states = np.stack(actor.states)
                parts.append(cut_contact_windows(trace, states, steps, config.horizon))
                report()
        return join_windows(parts)

    if not config.own:
        _check_same_task(who)
    return probe_policies(
        who, config, CONTACT, record=recorded, read=read_policy, untrained=untrained_policy,
        report=report,
    )  # fmt: skip


def _share(config: ContactProbeConfig, policies: int) -> int:
    """Return the number of episodes per policy."""
    return config.episodes if config.own else -(-config.episodes // policies)


def _check_same_task(who: ProbeSubjects) -> None:
    """Raise unless all policies have the same task."""
    first, actor = who.probed[0], who.acting[0]
    task, acted = first.policy.config.task, actor.policy.config.task
    if (task.suite, task.name) != (acted.suite, acted.name):
        raise InputError(
            f"{actor.path} was trained on {acted.suite} {acted.name}, {first.path} on "
            f"{task.suite} {task.name}: policies can only be probed on their own task."
        )


def cut_contact_windows(
    trace: ContactTrace, states: np.ndarray, steps: int, horizon: int
) -> ProbeWindows:
    """Cut one episode into windows, starting shortly before the first contact.

    Args:
        trace: Forces and motion; row t is the state at t + 1.
        states: What the policy saw at every t, (T, state).
        steps: Observations that a policy looks at; at the start the first one is repeated.
        horizon: Control steps H that targets look ahead.
    """
    at = first_contact(trace.largest_force)
    first = len(trace) if at is None else max(0, at - BEFORE)
    starts = np.arange(first, max(first, len(trace) - horizon + 1))
    history = np.maximum(starts[:, None] + np.arange(1 - steps, 1), 0)
    future = starts[:, None] + np.arange(horizon)
    quantities = {
        "force": trace.largest_force,
        "work": contact_work(trace.largest_force, trace.displacement),
    }
    columns = [target.values(quantities[target.quantity][future]) for target in TARGETS]
    return ProbeWindows(
        observations=states[history].reshape(len(starts), steps * states.shape[1]),
        targets=np.stack(columns, axis=1),
        unit=np.zeros(len(starts), dtype=np.int64),
        episodes=int(len(starts) > 0),
    )


def read_policy(policy: HandlingPolicy, observations: np.ndarray) -> dict[str, np.ndarray]:
    """Return the features of a policy's conditioner on histories of the state."""
    states = torch.from_numpy(np.ascontiguousarray(observations, dtype=np.float32))
    ready = policy.backbone.conditioner_inputs(policy, states)
    conditioner = policy.backbone.conditioner(policy.network)
    return {"raw": observations, **read_conditioner(conditioner, ready)}


def untrained_policy(policy: HandlingPolicy) -> HandlingPolicy:
    """Return the same network with random weights and the trained normaliser."""
    torch.manual_seed(policy.config.seed)
    network = policy.backbone.make_policy(policy.config).to(policy.device).eval()
    return HandlingPolicy(policy.config, 0, network, policy.normalise, policy.denormalise)


class _Watched:
    """An actor that records its observations."""

    def __init__(self, actor: HandlingActor) -> None:
        self.actor = actor
        self.states: list[np.ndarray] = []

    def reset(self, seed: int) -> None:
        self.states = []
        self.actor.reset(seed)

    def wants_images(self) -> bool:
        return self.actor.wants_images()

    def act(self, observation: Observation) -> np.ndarray:
        self.states.append(observation.state)
        return self.actor.act(observation)


def _feature_names(policy: HandlingPolicy) -> list[str]:
    width = policy.config.task.state * policy.config.network.observation_steps
    return list(read_policy(policy, np.zeros((1, width), dtype=np.float32)))


def _load(
    paths: Sequence[Path], checkpoint: int | None, config: ContactProbeConfig
) -> tuple[ProbeSubjects, list[str]]:
    subjects, left_out = load_same_task(paths, checkpoint, config)
    acting = load_same_task([config.reference], None, config)[0] if config.reference else subjects
    return ProbeSubjects(subjects, acting), left_out


def count_work(who: ProbeSubjects, config: ContactProbeConfig) -> int:
    """Return how often :func:`probe_contact` reports."""
    fits = sum(len(_feature_names(one.policy)) for one in who.probed)
    acting = len(who.probed if config.own else who.acting)
    return acting * _share(config, acting) + fits * (2 if config.untrained else 1)


def _run(who: ProbeSubjects, config: ContactProbeConfig, report: Report) -> Finding:
    torch.set_num_threads(config.threads)
    environment = environment_of(who.acting[0].policy.config, task=config.task)
    try:
        found = probe_contact(who, config, environment, report)
    finally:
        environment.close()
    return make_finding(found, config, who, environment.control_seconds)


CONTACT_PROBE = Study(
    name="probe",
    domain="manipulation",
    help=PROBE_HELP,
    config=ContactProbeConfig,
    load=_load,
    count=count_work,
    run=_run,
)
"""``prism probe`` of manipulation runs."""
