"""Left-right mirroring of observations and actions, as rsl_rl's symmetry extension wants it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from prism_motor.locomotion.env import VelocityEnv
from prism_motor.sim.robots import Robot


class Mirror:
    """Permutations and signs that mirror one actor frame, one critic frame and one action.

    The mirrored robot is half a gait cycle later: the clock changes sign.
    """

    def __init__(self, robot: Robot) -> None:
        joints, feet = list(robot.mirror), len(robot.feet)
        swap = [i ^ 1 for i in range(feet)]  # feet come in left-right pairs
        sign = [float(s) for s in robot.mirror_sign]
        vector, pseudo = ([0, 1, 2], [1.0, -1.0, 1.0]), ([0, 1, 2], [-1.0, 1.0, -1.0])
        angles = ([0, 1, 2], [-1.0, 1.0, -1.0])
        common = [
            ([0, 1], [-1.0, -1.0]),
            ([0, 1, 2], [1.0, -1.0, -1.0]),
            (joints, sign),
            (joints, sign),
            (joints, sign),
        ]
        self.action = _join([(joints, sign)])
        self.actor = _join([*common, pseudo, angles])
        push = ([0, 1, 2, 3, 4], [1.0, -1.0, -1.0, 1.0, -1.0])
        same = ([0], [1.0])
        pairs = (swap, [1.0] * feet)
        self.critic = _join(
            [*common, (joints, sign), vector, pseudo, angles, push, same, same, pairs, pairs]
        )


def _join(parts: list[tuple[list[int], list[float]]]) -> tuple[Tensor, Tensor]:
    order: list[int] = []
    signs: list[float] = []
    for indices, factors in parts:
        start = len(order)
        order += [start + i for i in indices]
        signs += factors
    return torch.tensor(order), torch.tensor(signs)


def mirror_frames(values: Tensor, rule: tuple[Tensor, Tensor]) -> Tensor:
    """Mirror a stack of frames (..., frames * size)."""
    order, signs = rule
    frames = values.unflatten(-1, (-1, len(order)))
    return (frames[..., order] * signs).flatten(-2)


_mirror_of = lru_cache(maxsize=4)(Mirror)


def augment(
    env: VelocityEnv, obs: TensorDict | None, actions: Tensor | None, **_: Any
) -> tuple[TensorDict | None, Tensor | None]:
    """Append mirrored copies; the form is fixed by rsl_rl."""
    mirror = _mirror_of(env.robot)
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
