"""What is known about a policy's learned products, as found by :mod:`.study`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from torch import Tensor

from prism_motor._ranges import Seed, Threads, between
from prism_motor.analysis.explain.closed_loop import WalkSummary
from prism_motor.analysis.explain.effects import ProductEffect
from prism_motor.analysis.explain.groups import GroupMatrix
from prism_motor.analysis.explain.removals import Effect, ProductFiring, RemovalCurve
from prism_motor.analysis.study import StudyConfig
from prism_motor.locomotion.conditions import find_condition


@dataclass(frozen=True)
class ExplainConfig(StudyConfig, section="explain"):
    """Which states, and how many."""

    condition: str = "nominal"
    """One of nominal, low-friction, payload, pushes, training."""
    envs: Annotated[int, between(2, 100_000)] = 24
    """Robots; half rank the products, the other half compare them with random ones."""
    seconds: Annotated[float, between(1, 600)] = 12.0
    """How long each walks."""
    states: Annotated[int, between(1, 10_000_000)] = 1200
    """States, spread evenly over the rollout, on which every product is removed."""
    top: Annotated[int, between(1, 10_000)] = 10
    """Products in the table, and how many are compared with random ones in closed loop."""
    draws: Annotated[int, between(1, 100_000)] = 20
    """Random sets of products that the strongest are compared with."""
    seed: Seed = 1000
    """Seed of the rollout and of the random sets."""
    closed_loop: bool = True
    """Whether each robot also walks an episode without products."""
    threads: Threads = 1
    """Threads of the simulation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        find_condition(self.condition)


@dataclass(frozen=True)
class Explanation:
    """Everything that is known about a policy's products."""

    config: ExplainConfig
    about: dict[str, Any]
    """Where the states came from."""
    products: list[ProductEffect]
    """All products, strongest first."""
    removed: Effect
    """Change of the target when all products are removed at once."""
    linear: Effect
    """The same when they are replaced by their best linear approximation."""
    target_spread: float
    """Standard deviation of the joint target, all joints in quadrature, rad."""
    gates: tuple[Tensor, float] | None
    """Gates (degree - 1, features) and where they started; ``None`` without gates."""
    curve: RemovalCurve
    """The strongest products against random ones."""
    groups: GroupMatrix
    """Products by input group."""
    firing: ProductFiring
    """The strongest products along a few seconds of one robot."""
    closed_loop: dict[str, WalkSummary] | None
    """How the robots walk without products, by variant."""
