"""Every feature of every network, probed on windows of any domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from prism_motor._errors import InputError
from prism_motor.analysis.probe_data import Domain, Windows
from prism_motor.analysis.probe_fit import cross_predict, folds_at_random, folds_by_unit, moments
from prism_motor.nn.checks import check_size

ANY_ARM = "any"
"""Arm of features that are the same for all: the raw observation on shared windows."""

UNTRAINED = " (untrained)"
"""End of the name of an arm whose networks have random weights."""


@dataclass(frozen=True)
class FitConfig:
    """What probes of all domains have in common."""

    own: bool = False
    """Whether every policy is probed on its own states instead of the same for all."""
    horizon: int = 5
    """Control steps that targets look ahead."""
    seed: int = 201
    """Seed of the recording and of the split."""
    untrained: bool = False
    """Whether every network is also probed with random weights."""
    directions: int | None = None
    """Principal directions of every feature that are used, so that wide ones have no advantage."""

    def __post_init__(self) -> None:
        check_size("Probes", "horizon", self.horizon)
        if self.directions is not None:
            check_size("Probes", "directions", self.directions)
        if self.seed < 0:
            raise InputError(f"Probes: the seed must not be negative, got {self.seed}.")

    def origin(self, study: Study) -> str:
        """Say where the windows of a study come from."""
        return f"{study.episodes} episodes"


@dataclass(frozen=True)
class Network:
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
    """Training seed of the policy; none for features that are the same for all."""
    features: str
    """Name of the feature."""
    width: int
    """How many numbers the feature has."""
    rank: int
    """How many of its directions were used: all independent ones, unless told otherwise."""
    sums: np.ndarray
    """Moments of every unit, predicted by probes that never saw it, (units, targets, 7)."""
    leaky_sums: np.ndarray
    """The same when windows are split at random, so that probes have seen every unit."""


@dataclass(frozen=True)
class Study:
    """All probes, and what they were made on."""

    domain: Domain
    """What was probed for."""
    probes: list[Probe]
    """One per policy and feature."""
    windows: int
    """Windows, of one policy if every policy has its own."""
    episodes: int
    """Episodes that they come from."""
    units: int
    """Units of the domain that they come from."""


def fit_probes(
    networks: Sequence[Network],
    windows: Windows,
    domain: Domain,
    config: FitConfig,
    report: Callable[[], None] | None = None,
) -> Study:
    """Probe every feature of every network on the same windows.

    Args:
        networks: The networks, trained or not.
        windows: What they see, and what is to be predicted from it.
        domain: Where the windows come from.
        config: How.
        report: Called after every feature.
    """
    fold = folds_by_unit(windows.unit, config.seed, domain)
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
            if report is not None:
                report()
    return Study(
        domain=domain,
        probes=list(probes.values()),
        windows=len(windows),
        episodes=windows.episodes,
        units=len(np.unique(windows.unit)),
    )


def join_studies(studies: Sequence[Study]) -> Study:
    """Put the probes of policies on their own windows together."""
    return replace(studies[0], probes=[p for study in studies for p in study.probes])
