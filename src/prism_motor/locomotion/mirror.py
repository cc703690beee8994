"""Left-right mirroring of observations and actions, as rsl_rl's symmetry extension expects it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from tensordict import TensorDict
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.locomotion.observations import Frame, Rule, frame_of

if TYPE_CHECKING:
    from prism_motor.locomotion.legged import LeggedEnv
    from prism_motor.locomotion.task import LeggedTaskConfig


class Mirror:
    """Permutations and signs that mirror one actor frame, one critic frame and one action.

    Args:
        frame: What actor and critic see; defines how each block and the robot are mirrored.
    """

    def __init__(self, frame: Frame) -> None:
        self.actor = _join(block.mirror_rule(frame.robot) for block in frame.actor_blocks)
        self.critic = _join(block.mirror_rule(frame.robot) for block in frame.blocks)
        assert frame.robot.mirror is not None
        assert frame.robot.mirror_sign is not None
        signs = [float(sign) for sign in frame.robot.mirror_sign]
        self.action = _join([(list(frame.robot.mirror), signs)])


def _join(rules: Iterable[Rule]) -> tuple[Tensor, Tensor]:
    order: list[int] = []
    signs: list[float] = []
    for indices, factors in rules:
        start = len(order)
        order += [start + i for i in indices]
        signs += factors
    return torch.tensor(order), torch.tensor(signs)


def mirror_frames(values: Tensor, rule: tuple[Tensor, Tensor]) -> Tensor:
    """Mirror a stack of frames (..., frames * size)."""
    order, signs = (part.to(values.device) for part in rule)
    frames = values.unflatten(-1, (-1, len(order)))
    return (frames[..., order] * signs).flatten(-2)


def check_mirror(task: LeggedTaskConfig) -> None:
    """Raise if a task's robot or observations do not define their mirroring."""
    Mirror(frame_of(task))


def can_mirror(task: LeggedTaskConfig) -> bool:
    """Return whether a task's robot and observations define their mirroring."""
    try:
        check_mirror(task)
    except InputError:
        return False
    return True


_mirror_of = lru_cache(maxsize=4)(Mirror)  # frames are compared by identity


def augment(
    env: LeggedEnv, obs: TensorDict | None, actions: Tensor | None, **_: Any
) -> tuple[TensorDict | None, Tensor | None]:
    """Append mirrored copies; rsl_rl fixes the signature."""
    mirror = _mirror_of(env.frame)
    if obs is not None:
        twin = TensorDict(
            {
                "policy": mirror_frames(obs["policy"], mirror.actor),
                "critic": mirror_frames(obs["critic"], mirror.critic),
            },
            batch_size=obs.batch_size,
        )
        both = torch.cat([obs, twin], dim=0)  # type: ignore[arg-type]
        obs = both  # type: ignore[assignment]
    if actions is not None:
        actions = torch.cat([actions, mirror_frames(actions, mirror.action)])
    return obs, actions
