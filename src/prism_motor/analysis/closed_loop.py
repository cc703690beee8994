"""Does the robot still walk without its learned products?

The policy acts by itself, so a small change of every target can add up to a fall, and a large one
can be balanced by the next step.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from prism_motor.analysis.products import Parts, Products
from prism_motor.locomotion.evaluation import Protocol, evaluate
from prism_motor.locomotion.policy import Policy
from prism_motor.locomotion.summary import Summary, summarise

Variant = Callable[[Parts], Tensor]
"""What the policy uses as its interaction features, (N, latent)."""


def walk(
    policy: Policy,
    products: Products,
    variant: Variant,
    *,
    condition: str,
    seed: int,
    envs: int,
    threads: int = 1,
) -> Summary:
    """Let robots walk one episode each with other interaction features.

    Args:
        policy: The policy.
        products: Its products.
        variant: The features.
        condition: Name of a condition.
        seed: Seed of initial states and commands.
        envs: Robots.
        threads: Threads of the simulation.
    """

    def act(observations: Tensor) -> Tensor:
        parts = products.read(observations)
        return products.targets(parts, variant(parts)) / products.action.scale

    protocol = Protocol(envs=envs, episodes=1)
    task = policy.config.task
    return summarise(evaluate(act, task, condition, seed=seed, protocol=protocol, threads=threads))


def make_variants(
    products: Products, strongest: Tensor, top: int, stand_in: Variant, *, envs: int, seed: int
) -> dict[str, Variant]:
    """Return what is compared, by title.

    Args:
        products: The products.
        strongest: Products, strongest first.
        top: How many of them are removed.
        stand_in: A linear map in place of all products.
        envs: Robots; each loses its own random set.
        seed: Seed of the random sets.
    """
    count = products.count
    without_top = torch.ones(count)
    without_top[strongest[:top]] = 0.0
    generator = torch.Generator().manual_seed(seed)
    without_random = torch.ones(envs, count)
    for row in without_random:
        row[torch.randperm(count, generator=generator)[:top]] = 0.0

    def keeping(keep: Tensor) -> Variant:
        return lambda parts: products.features(parts, keep)

    return {
        "whole policy": products.features,
        f"without {top} random products": keeping(without_random),
        f"without the {top} strongest": keeping(without_top),
        "without any product": keeping(torch.zeros(count)),
        "linear map instead of products": stand_in,
    }
