"""Probes of any domain: what is predicted, on which windows, and from which features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from prism_motor._checks import InputError
from prism_motor._ranges import Seed, Threads, between
from prism_motor.analysis.probe.fit import cross_predict, folds_at_random, folds_by_unit, moments
from prism_motor.analysis.study import Report, StudyConfig, silent
from prism_motor.analysis.subjects import Subject

PROBE_HELP = """Probe frozen features for the mechanics of the next control steps.

Walking policies are probed for slip, power, impulse and errors, policies that learned from
demonstrations for contact impulse and contact work. All networks see the same observations, to
which every policy contributes equally, so targets are the same for all. Whole robots, or episodes,
are held out. Gains are relative to the first run. Writes probe.json and probe.png."""
"""Help of ``prism probe``, for all domains."""

ANY_ARM = "any"
"""Arm of features that all networks share: the raw observation on shared windows."""

UNTRAINED = " (untrained)"
"""Suffix of an arm whose networks have random weights."""


@dataclass(frozen=True)
class ProbeTarget:
    """Something to predict from features at time t."""

    name: str
    """Short name."""
    label: str
    """What figures call it."""
    formula: str
    """How it is computed over the window t+1..t+H."""
    quantity: str
    """The quantity that it is made of, by name."""
    logarithm: bool = False
    """Whether it is log(1 + sum) instead of the mean."""

    def values(self, windows: np.ndarray) -> np.ndarray:
        """Return the target of every window, (n, H) -> (n,)."""
        windows = windows.astype(np.float64)
        return np.log1p(windows.sum(-1)) if self.logarithm else windows.mean(-1)


@dataclass(frozen=True)
class ProbeTargets:
    """What is probed for in one domain, and how captions describe it."""

    targets: tuple[ProbeTarget, ...]
    """One per column of the targets."""
    unit: str
    """What is held out as a whole, e.g. ``robot``."""
    windows: str
    """Which windows count, e.g. ``upright windows``."""
    advice: str
    """What to do when too few units have windows."""

    @property
    def units(self) -> str:
        """The plural of the unit."""
        return f"{self.unit}s"


@dataclass(frozen=True)
class ProbeWindows:
    """Times t with a full history and a valid future of H steps."""

    observations: np.ndarray
    """What the policy saw at t, (n, observations)."""
    targets: np.ndarray
    """(n, targets), only from the states t+1..t+H."""
    unit: np.ndarray
    """The unit of each window, never on both sides of a split, (n,)."""
    episodes: int
    """How many episodes they come from."""

    def __len__(self) -> int:
        return len(self.unit)


def join_windows(parts: list[ProbeWindows]) -> ProbeWindows:
    """Join windows of several recordings; their units stay distinct."""
    units, offset = [], 0
    for part in parts:
        units.append(part.unit + offset)
        offset += int(part.unit.max(initial=-1)) + 1
    return ProbeWindows(
        observations=np.concatenate([part.observations for part in parts]),
        targets=np.concatenate([part.targets for part in parts]),
        unit=np.concatenate(units),
        episodes=sum(part.episodes for part in parts),
    )


@dataclass(frozen=True)
class ProbeConfig(StudyConfig, section="probe"):
    """What probes of all domains have in common."""

    reference: Path | None = None
    """Run whose policy acts for all."""
    own: bool = False
    """Probe every policy on the states of its own rollouts instead."""
    untrained: bool = False
    """Also probe every network with random weights, as a control."""
    directions: Annotated[int | None, between(1, 8192)] = None
    """Use only this many principal directions of every feature, so that wide ones have no
    advantage."""
    horizon: Annotated[int, between(1, 1000)] = 5
    """Control steps that targets look ahead."""
    seed: Seed = 201
    """Seed of rollouts and held-out parts."""
    threads: Threads = 1
    """Threads of the simulation, or of a manipulation policy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference is not None and self.own:
            raise InputError("Give --reference (one policy acts for all) or --own, not both.")

    def origin(self, found: ProbeSet) -> str:
        """Describe where the windows come from."""
        return f"{found.episodes} episodes"


@dataclass(frozen=True)
class ProbeSubjects:
    """Whose networks are probed, and on whose states."""

    probed: list[Subject]
    """Policies whose networks are probed."""
    acting: list[Subject]
    """Policies that record the shared windows, in equal shares."""


@dataclass(frozen=True)
class ProbedNetwork:
    """A frozen network whose features are probed."""

    arm: str
    """Arm that it is counted with."""
    training_seed: int
    """Its training seed."""
    read: Callable[[np.ndarray], dict[str, np.ndarray]]
    """From observations (n, observations) to features (n, width) by name."""


@dataclass(frozen=True)
class Probe:
    """One feature of one policy, probed for all targets."""

    arm: str
    """Arm of the policy, or :data:`ANY_ARM`."""
    training_seed: int | None
    """Training seed of the policy; ``None`` for features that all networks share."""
    features: str
    """Name of the feature."""
    width: int
    """How many numbers the feature has."""
    rank: int
    """How many of its directions were used: all independent ones by default."""
    sums: np.ndarray
    """Moments of every unit, predicted by probes that never saw it, (units, targets, 7)."""
    leaky_sums: np.ndarray
    """The same when windows are split at random, so that probes have seen every unit."""


@dataclass(frozen=True)
class ProbeSet:
    """All probes, and what they were made on."""

    scope: ProbeTargets
    """What was probed for."""
    probes: list[Probe]
    """One per policy and feature."""
    windows: int
    """Windows, of one policy if every policy has its own."""
    episodes: int
    """Episodes that they come from."""
    units: int
    """Units that they come from."""


def fit_probes(
    networks: Sequence[ProbedNetwork],
    windows: ProbeWindows,
    scope: ProbeTargets,
    config: ProbeConfig,
    report: Report = silent,
) -> ProbeSet:
    """Probe every feature of every network on the same windows.

    Args:
        networks: The networks, trained or not.
        windows: What they see, and what is predicted from it.
        scope: What is predicted, and what is held out as a whole.
        config: Settings.
        report: Called after every feature.
    """
    # One split by whole units, and a random one that shows what leakage would do.
    fold = folds_by_unit(windows.unit, config.seed, scope)
    leaky_fold = folds_at_random(len(windows), config.seed)
    probes: dict[tuple[str, int | None, str], Probe] = {}
    for network in networks:
        for name, values in network.read(windows.observations).items():
            shared = name == "raw" and not config.own
            key = (ANY_ARM, None, name) if shared else (network.arm, network.training_seed, name)
            if key not in probes:
                found = cross_predict(values, windows.targets, fold, config.directions)
                leaky = cross_predict(values, windows.targets, leaky_fold, config.directions)
                probes[key] = Probe(
                    *key,
                    width=values.shape[1],
                    rank=found.rank,
                    sums=moments(found, windows.unit),
                    leaky_sums=moments(leaky, windows.unit),
                )
            report()
    return ProbeSet(
        scope=scope,
        probes=list(probes.values()),
        windows=len(windows),
        episodes=windows.episodes,
        units=len(np.unique(windows.unit)),
    )


def join_probes(parts: Sequence[ProbeSet]) -> ProbeSet:
    """Join the probes of policies on their own windows."""
    return replace(parts[0], probes=[probe for part in parts for probe in part.probes])


def probe_policies(
    who: ProbeSubjects,
    config: ProbeConfig,
    scope: ProbeTargets,
    *,
    record: Callable[[Sequence[Subject]], ProbeWindows],
    read: Callable[[Any, np.ndarray], dict[str, np.ndarray]],
    untrained: Callable[[Any], Any],
    report: Report = silent,
) -> ProbeSet:
    """Record windows, shared or per policy, and probe every policy on them.

    Args:
        who: The policies.
        config: Settings.
        scope: What is predicted.
        record: Lets policies act and cuts windows.
        read: From a policy and observations to features by name.
        untrained: From a policy to the same one with random weights.
        report: Called after every feature; recording has its own reports.
    """

    def networks(subjects: Sequence[Subject]) -> list[ProbedNetwork]:
        policies = [(one.arm, one.policy) for one in subjects]
        if config.untrained:
            policies += [(one.arm + UNTRAINED, untrained(one.policy)) for one in subjects]
        return [ProbedNetwork(arm, one.config.seed, partial(read, one)) for arm, one in policies]

    if not config.own:
        windows = record(who.acting)
        return fit_probes(networks(who.probed), windows, scope, config, report)
    return join_probes(
        [fit_probes(networks([one]), record([one]), scope, config, report) for one in who.probed]
    )
