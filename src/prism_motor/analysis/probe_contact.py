"""A probe study of contact: what a conditioner knows of the forces that follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from prism_motor._errors import InputError
from prism_motor.analysis.features import read_conditioner
from prism_motor.analysis.manipulators import Manipulator
from prism_motor.analysis.probe_core import (
    UNTRAINED,
    FitConfig,
    Network,
    Study,
    fit_probes,
    join_studies,
)
from prism_motor.analysis.probe_data import Domain, Target, Windows, join_windows
from prism_motor.manipulation.contact import (
    BEFORE,
    THRESHOLD,
    ContactTrace,
    contact_work,
    first_contact,
)
from prism_motor.manipulation.demonstrations.dataset import STATE
from prism_motor.manipulation.diffusion.network import make_policy
from prism_motor.manipulation.diffusion.policy import Policy, PolicyActor
from prism_motor.manipulation.environment import Environment, HandlingActor, Observation
from prism_motor.manipulation.rollout import run_episode
from prism_motor.nn.checks import check_size

TARGETS = (
    Target("contact_impulse", "contact impulse", "log(1 + sum_h F)", "force", True),
    Target("contact_work", "contact work", "mean_h F |dx|", "work"),
)
"""Those of the paper's tables, whose work is the sum: the same after standardising."""

CONTACT = Domain(
    TARGETS,
    unit="episode",
    windows=f"windows from {BEFORE} steps before the first contact ({THRESHOLD:g} N) on",
    advice="Record more episodes, or a policy that touches something.",
)
"""Arms that handle things; every episode is held out whole."""


@dataclass(frozen=True)
class ContactProbeConfig(FitConfig):
    """How probes of contact are made."""

    episodes: int = 40
    """Random resets: of every policy on its own states, else of all policies together."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("Probes", "episodes", self.episodes)

    def origin(self, study: Study) -> str:
        """Say where the windows of a study come from."""
        return f"{study.episodes} episodes with contact, from random resets"


def count_contact_work(
    manipulators: Sequence[Manipulator], config: ContactProbeConfig, sources: int
) -> int:
    """Return how often a study reports."""
    fits = sum(len(_feature_names(one.policy)) for one in manipulators)
    runs = len(manipulators) * config.episodes if config.own else sources * _share(config, sources)
    return runs + fits * (2 if config.untrained else 1)


def run_contact_study(
    manipulators: Sequence[Manipulator],
    config: ContactProbeConfig,
    sources: Sequence[Manipulator],
    environment: Environment,
    report: Callable[[], None] | None = None,
) -> Study:
    """Record, and probe the conditioner of every policy.

    Args:
        manipulators: Policies to probe.
        config: How.
        sources: Policies that act for the shared windows, in equal shares; not used when every
            policy is probed on its own states.
        environment: The task of all of them.
        report: Called after every episode and every feature.
    """
    if config.own:
        studies = []
        for one in manipulators:
            windows = _record([one], config, config.episodes, environment, report)
            studies.append(_probe([one], windows, config, report))
        return join_studies(studies)
    check_same_task(manipulators, sources)
    share = _share(config, len(sources))
    windows = _record(sources, config, share, environment, report)
    return _probe(manipulators, windows, config, report)


def check_same_task(manipulators: Sequence[Manipulator], sources: Sequence[Manipulator]) -> None:
    """Raise unless all policies handle the same things."""
    task, acted = manipulators[0].policy.config.task, sources[0].policy.config.task
    if (task.suite, task.name) != (acted.suite, acted.name):
        raise InputError(
            f"{sources[0].path} was trained on {acted.suite} {acted.name}, {manipulators[0].path} "
            f"on {task.suite} {task.name}: policies can only be probed where their task is done."
        )


def cut_contact_windows(
    trace: ContactTrace, states: np.ndarray, steps: int, horizon: int
) -> Windows:
    """Cut one episode into windows, none before the neighbourhood of the first contact.

    Args:
        trace: Forces and motion; row t is the state at t + 1.
        states: What the policy saw at every t, (T, state).
        steps: Observations that a policy looks at; before the first one it is repeated.
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
    return Windows(
        observations=states[history].reshape(len(starts), steps * states.shape[1]),
        targets=np.stack(columns, axis=1),
        unit=np.zeros(len(starts), dtype=np.int64),
        episodes=int(len(starts) > 0),
    )


def read_policy(policy: Policy, observations: np.ndarray) -> dict[str, np.ndarray]:
    """Return the features of a policy's conditioner on histories of the state."""
    size = policy.config.task.state
    states = torch.from_numpy(np.ascontiguousarray(observations, dtype=np.float32))
    steps = states.reshape(-1, size)
    ready = policy.normalise({STATE: steps})[STATE].reshape(len(states), -1)
    conditioner = policy.network.diffusion.conditioner
    return {"raw": observations, **read_conditioner(conditioner, ready)}


def untrained_policy(policy: Policy) -> Policy:
    """Return the same network with random weights and the trained normaliser."""
    torch.manual_seed(policy.config.seed)
    network = make_policy(policy.config).eval()
    return Policy(policy.config, 0, network, policy.normalise, policy.denormalise)


def _share(config: ContactProbeConfig, sources: int) -> int:
    return -(-config.episodes // sources)


def _feature_names(policy: Policy) -> list[str]:
    width = policy.config.task.state * policy.config.network.observation_steps
    return list(read_policy(policy, np.zeros((1, width), dtype=np.float32)))


class _Watched:
    """A policy whose observations are kept."""

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


def _record(
    sources: Sequence[Manipulator],
    config: ContactProbeConfig,
    episodes: int,
    environment: Environment,
    report: Callable[[], None] | None,
) -> Windows:
    """Let policies act from random resets, none twice, and cut windows."""
    parts = []
    for i, source in enumerate(sources):
        actor = _Watched(PolicyActor(source.policy))
        steps = source.policy.config.network.observation_steps
        for k in range(episodes):
            seed = 10_000 * config.seed + episodes * i + k
            _, trace = run_episode(environment, actor, reset_seed=seed, seed=seed, linger=BEFORE)
            parts.append(cut_contact_windows(trace, np.stack(actor.states), steps, config.horizon))
            if report is not None:
                report()
    return join_windows(parts)


def _probe(
    manipulators: Sequence[Manipulator],
    windows: Windows,
    config: ContactProbeConfig,
    report: Callable[[], None] | None,
) -> Study:
    policies = [(one.arm, one.policy) for one in manipulators]
    if config.untrained:
        policies += [(one.arm + UNTRAINED, untrained_policy(one.policy)) for one in manipulators]
    networks = [
        Network(arm, policy.config.seed, partial(read_policy, policy)) for arm, policy in policies
    ]
    return fit_probes(networks, windows, CONTACT, config, report)
