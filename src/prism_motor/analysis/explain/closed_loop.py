"""Does the robot still walk without its learned products, or with a linear map in their place?

The policy runs in closed loop, so a small change of every target can add up to a fall, and a large
one can be corrected at the next step.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.analysis.explain.products import Parts, Products, WalkingProducts
from prism_motor.analysis.study import Report, silent
from prism_motor.locomotion.evaluation import Protocol, WalkingEpisode, evaluate
from prism_motor.statistics import Interval, wilson

if TYPE_CHECKING:
    from prism_motor.locomotion.policy import WalkingPolicy

Variant = Callable[[Parts], Tensor]
"""Returns what the policy uses as its interaction features, (N, latent)."""

VARIANTS = 5
"""How many variants :func:`make_variants` compares."""

_PENALTIES = tuple(10.0**power for power in range(-3, 5))
"""Ridge penalties to choose from."""

_FOLDS = 4
"""Folds that the robots are divided into."""


class LinearReplacement:
    """The best linear approximation of what all products add to the features.

    Ridge regression on the normalised observation. The penalty is the one that best predicts
    held-out robots, a choice in favour of the linear map.

    Args:
        products: The products.
        parts: States to fit on.
        robots: The robot of each state; at least two.

    Attributes:
        held_out: Features on the same states, each robot predicted by a fit without it.
    """

    @torch.no_grad()
    def __init__(self, products: Products, parts: Parts, robots: np.ndarray) -> None:
        self.products = products
        first = products.first_order(parts)
        # In double precision, which not every device has.
        inputs = parts.inputs.cpu().double()
        added = (products.features(parts) - first).cpu().double()
        fold = torch.from_numpy(np.unique(robots, return_inverse=True)[1].reshape(-1) % _FOLDS)
        guesses = added.new_zeros(len(_PENALTIES), *added.shape)
        for number in fold.unique():
            rest = fold != number
            maps = _fit(inputs[rest], added[rest])
            for guess, (slope, offset) in zip(guesses, maps, strict=True):
                guess[~rest] = inputs[~rest] @ slope + offset
        best = int((guesses - added).square().sum((1, 2)).argmin())
        self.held_out = first + guesses[best].to(first)
        slope, offset = _fit(inputs, added)[best]
        self._slope, self._offset = slope.to(first), offset.to(first)

    def __call__(self, parts: Parts) -> Tensor:
        """Return the features with the linear map instead of the products."""
        return self.products.first_order(parts) + parts.inputs @ self._slope + self._offset


def _fit(inputs: Tensor, outputs: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return slope and offset of the ridge regression for every penalty."""
    middle, spread = inputs.mean(0), inputs.std(0).clamp_min(1e-6)
    offset = outputs.mean(0)
    x = (inputs - middle) / spread
    values, vectors = torch.linalg.eigh(x.T @ x)
    projected = vectors.T @ (x.T @ (outputs - offset))
    found = []
    for penalty in _PENALTIES:
        slope = vectors @ (projected / (values + penalty).unsqueeze(-1)) / spread.unsqueeze(-1)
        found.append((slope, offset - middle @ slope))
    return found


def walk(
    policy: WalkingPolicy,
    products: WalkingProducts,
    variant: Variant,
    *,
    condition: str,
    seed: int,
    envs: int,
    threads: int = 1,
    report: Report = silent,
) -> WalkSummary:
    """Let robots walk one episode each with other interaction features.

    Args:
        policy: The policy.
        products: Its products.
        variant: The features.
        condition: Name of a condition.
        seed: Seed of initial states and commands.
        envs: Robots.
        threads: Threads of the simulation.
        report: Called for every control step of a whole episode, see :func:`episode_steps`.
    """
    steps = iter(range(episode_steps(policy)))

    def act(observations: Tensor) -> Tensor:
        parts = products.read(observations)
        targets = products.targets(parts, variant(parts)) / products.action.scale
        return targets.to(observations.device)

    def count_step() -> None:
        if next(steps, None) is not None:
            report()

    found = evaluate(
        act, policy.config.task, condition, seed=seed, protocol=Protocol(envs=envs, episodes=1),
        threads=threads, report=count_step,
    )  # fmt: skip
    for _ in steps:  # if all fell before the end
        report()
    return summarise_walks(found)


def episode_steps(policy: WalkingPolicy) -> int:
    """Return how many control steps an episode has."""
    task = policy.config.task
    return round(task.terminations.duration / task.simulation.control_dt)


def make_variants(
    products: Products, strongest: Tensor, top: int, replacement: Variant, *, envs: int, seed: int
) -> dict[str, Variant]:
    """Return what is compared, by title.

    Args:
        products: The products.
        strongest: Products, strongest first.
        top: How many of them are removed.
        replacement: A linear map in place of all products.
        envs: Robots; each loses its own random set.
        seed: Seed of the random sets.
    """
    total = products.count
    without_top = torch.ones(total)
    without_top[strongest[:top].cpu()] = 0.0
    generator = torch.Generator().manual_seed(seed)
    without_random = torch.ones(envs, total)
    for row in without_random:
        row[torch.randperm(total, generator=generator)[:top]] = 0.0

    def keeping(keep: Tensor) -> Variant:
        placed = keep.to(products.device)
        return lambda parts: products.features(parts, placed)

    return {
        "whole policy": products.features,
        f"without {top} random products": keeping(without_random),
        f"without the {top} strongest": keeping(without_top),
        "without any product": keeping(torch.zeros(total)),
        "linear map instead of products": replacement,
    }


_FIELDS = (
    "episode_return",
    "linear_error",
    "yaw_error",
    "speed_ratio",
    "swing_apex",
    "double_support",
    "touchdowns",
)
"""Fields of an episode that are summarised."""


@dataclass(frozen=True)
class EpisodeSpread:
    """Mean and sample standard deviation over the episodes that have a value."""

    mean: float
    sd: float | None
    """``None`` for a single episode."""
    count: int


@dataclass(frozen=True)
class WalkSummary:
    """One condition of one policy. Episodes share that policy: they are not training seeds."""

    episodes: int
    """How many episodes."""
    survived: int
    """How many of them lasted to the time-out."""
    interval: Interval
    """Wilson interval of the survival rate, 95 %."""
    spreads: dict[str, EpisodeSpread]
    """Spread of every measurement over episodes, by field of :class:`WalkingEpisode`."""


def summarise_walks(episodes: Sequence[WalkingEpisode]) -> WalkSummary:
    """Summarise the episodes of one condition."""
    if not episodes:
        raise InputError("There are no episodes to summarise.")
    survived = sum(episode.survived for episode in episodes)
    spreads = {}
    for field in _FIELDS:
        values = [value for e in episodes if (value := getattr(e, field)) is not None]
        if values:
            sd = statistics.stdev(values) if len(values) > 1 else None
            spreads[field] = EpisodeSpread(statistics.fmean(values), sd, len(values))
    return WalkSummary(len(episodes), survived, wilson(survived, len(episodes)), spreads)
