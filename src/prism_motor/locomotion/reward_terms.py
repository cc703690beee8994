"""How to write reward terms: what they see, what they remember, what they need.

A function is a term without memory, a subclass of :class:`RewardTerm` is one with memory; both are
registered with :func:`term`. Their keyword-only arguments are parameters, whose values come from
``RewardConfig.parameters``.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from prism_motor._checks import InputError, check_choice
from prism_motor._registry import Registry
from prism_motor.locomotion.state import RobotState
from prism_motor.locomotion.task import RewardConfig

if TYPE_CHECKING:
    from prism_motor.sim.robots import Robot

NEEDS = {
    "commands": "a task with velocity commands",
    "gait": "a task with a gait clock",
    "foot pairs": "a robot whose feet come in left-right pairs",
    "knee pairs": "a robot with knees in left-right pairs",
}
"""What a term may require of its task and robot."""


@dataclass
class LeggedStep:
    """Everything that a reward term can use, in any task; extend it for your own task."""

    config: RewardConfig
    state: RobotState
    contact: Tensor
    """(N, F) feet that are on the ground."""
    default_pose: Tensor
    """(J,)"""
    actions: tuple[Tensor, Tensor, Tensor]
    """Applied actions: now, one step ago, two steps ago."""
    last_dq: Tensor
    """(N, J) joint velocities one step ago."""
    last_world_velocity: Tensor
    """(N, 6) base velocity one step ago."""
    control_dt: float

    @cached_property
    def sole_height(self) -> Tensor:
        """(N, F) height of the soles above the ground."""
        return self.state.foot_position[..., 2] - self.config.foot_offset


@dataclass
class Step(LeggedStep):
    """A step of the velocity task."""

    command: Tensor
    """(N, 3) after resampling."""
    stance: Tensor
    """(N, F) feet that should be on the ground."""
    reference: Tensor
    """(N, J) reference angles of the previous observation."""

    @cached_property
    def planar_error(self) -> Tensor:
        """(N,) distance of the planar velocity from the commanded one."""
        return norm(self.command[:, :2] - self.state.velocity[:, :2])

    @cached_property
    def yaw_error(self) -> Tensor:
        """(N,) distance of the yaw rate from the commanded one."""
        return (self.command[:, 2] - self.state.angular_velocity[:, 2]).abs()


norm = partial(torch.linalg.vector_norm, dim=-1)
"""Length along the last axis, at half the cost of ``Tensor.norm``."""


class RewardTerm(ABC):
    """A reward term with memory.

    A subclass makes its tensors, one row per environment, in ``__init__`` and names them in
    ``memory``: they are part of checkpoints, are moved to where the task computes, and are zero at
    the start of an episode. Keyword-only arguments of ``__init__`` are parameters.

    Args:
        robot: The robot.
        num_envs: Number of environments.
    """

    memory: ClassVar[tuple[str, ...]] = ()
    """Names of the tensors that are remembered from step to step."""

    def __init__(self, robot: Robot, num_envs: int) -> None:
        self.robot, self.num_envs = robot, num_envs

    @abstractmethod
    def __call__(self, step: Any) -> Tensor:
        """Return the unweighted reward, (N,)."""

    def reset(self, envs: Tensor, sole_height: Tensor) -> None:
        """Start new episodes in some environments, whose soles are at these heights (envs, F)."""
        for name in self.memory:
            setattr(self, name, getattr(self, name).index_fill(0, envs, 0))

    def to(self, device: str | torch.device) -> None:
        """Move the memory to a device."""
        for name in self.memory:
            setattr(self, name, getattr(self, name).to(device))

    def state_dict(self) -> dict[str, Tensor]:
        """Return the memory."""
        return {name: getattr(self, name) for name in self.memory}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore the memory."""
        for name in self.memory:
            setattr(self, name, state[name])


@dataclass(frozen=True)
class TermSpec:
    """A registered term: how to make it, and what it needs."""

    make: Callable[..., Any]
    """A function of the step, or a subclass of :class:`RewardTerm`."""
    needs: tuple[str, ...]
    """Of :data:`NEEDS`."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Names of the parameters and their defaults."""
        found = inspect.signature(self.make).parameters.values()
        return {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}


TERMS: Registry[TermSpec] = Registry("reward term")
"""Reward terms by name."""


def term(made: Callable[..., Any] | None = None, *, needs: tuple[str, ...] = ()) -> Any:
    """Register a reward term, a function or a subclass of :class:`RewardTerm`, under its own name.

    ``class HopHigh`` is called ``hop_high`` in ``RewardConfig.weights``.

    Args:
        made: The term, if used as a plain decorator.
        needs: What it requires of task and robot, of :data:`NEEDS`.
    """
    if made is None:
        return partial(term, needs=needs)
    for need in needs:
        check_choice("need of a reward term", need, NEEDS)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", made.__name__).lower()
    if isinstance(made, type) and not issubclass(made, RewardTerm):
        raise InputError(f"The reward term {made.__name__} must extend RewardTerm.")
    TERMS.register(name, TermSpec(made, needs))
    return made
