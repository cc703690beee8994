"""Does the robot still walk without its learned products?

The policy acts by itself, so a small change of every target can add up to a fall, and a large one
can be balanced by the next step.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from prism.analysis.products import Products
from prism.learn.policy import Policy
from prism.locomotion.evaluation import Protocol, evaluate
from prism.locomotion.summary import Summary, summarise


def walk_without(
    policy: Policy,
    products: Products,
    keep: Tensor,
    *,
    condition: str,
    seed: int,
    envs: int,
    threads: int = 1,
    report: Callable[[], None] | None = None,
) -> Summary:
    """Let robots walk one episode each without some products.

    Args:
        policy: The policy.
        products: Its products.
        keep: Zeros for those that are removed, (count,), or for each robot its own, (envs, count).
        condition: Name of a condition.
        seed: Seed of initial states and commands.
        envs: Robots.
        threads: Threads of the simulation.
        report: Called after every control step.
    """

    def act(observations: Tensor) -> Tensor:
        parts = products.read(observations)
        return products.targets(parts, products.features(parts, keep)) / products.action.scale

    protocol = Protocol(envs=envs, episodes=1)
    episodes = evaluate(
        act, policy.config.task, condition,
        seed=seed, protocol=protocol, threads=threads, report=report,
    )  # fmt: skip
    return summarise(episodes)


def keep_masks(strongest: Tensor, top: int, count: int, envs: int, seed: int) -> dict[str, Tensor]:
    """Return what is kept in each comparison, by its title.

    Args:
        strongest: Products, strongest first.
        top: How many of them are removed.
        count: How many products there are.
        envs: Robots; each loses its own random set.
        seed: Seed of the random sets.
    """
    without_top = torch.ones(count)
    without_top[strongest[:top]] = 0.0
    generator = torch.Generator().manual_seed(seed)
    without_random = torch.ones(envs, count)
    for row in without_random:
        row[torch.randperm(count, generator=generator)[:top]] = 0.0
    return {
        "whole policy": torch.ones(count),
        f"without {top} random products": without_random,
        f"without the {top} strongest": without_top,
        "without any product": torch.zeros(count),
    }
