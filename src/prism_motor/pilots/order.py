"""The order of trials: blocks in which every arm starts once from the same pose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle


@dataclass(frozen=True)
class Slot:
    """A planned trial."""

    number: int
    """Its place in the order, from 1."""
    pose: int
    """Its start pose, from 1; the trials at one pose are a block and follow each other."""
    arm: str
    """Letter of its arm."""
    policy: int
    """Which of the arm's policies, from 0; several are training seeds."""


def make_order(arms: Sequence[str], trials: int, policies: int, seed: int) -> list[Slot]:
    """Return all trials in order.

    Within a block, each arm comes first, second, ... equally often, up to one; so it does among the
    blocks of each training seed. Which blocks those are is drawn.

    Args:
        arms: Letters of the arms.
        trials: Trials of each arm, which is the number of blocks.
        policies: Policies of each arm; the blocks take them in turn.
        seed: Seed of what is drawn.
    """
    draw = random.Random(f"order {seed}")
    # The rotations of one arrangement, taken in turn: any of them that follow each other have each
    # arm at each place equally often, up to one.
    start = draw.sample(list(arms), len(arms))
    rotations = cycle([start[turn:] + start[:turn] for turn in range(len(arms))])
    blocks: list[list[str]] = [[] for _ in range(trials)]
    for policy in range(policies):
        mine = list(range(policy, trials, policies))
        draw.shuffle(mine)
        for block in mine:
            blocks[block] = next(rotations)
    planned = [(block, arm) for block, row in enumerate(blocks) for arm in row]
    return [
        Slot(number, block + 1, arm, block % policies)
        for number, (block, arm) in enumerate(planned, start=1)
    ]


def draw_poses(trials: int, seed: int) -> list[int]:
    """Return the seed of every start pose; no two are equal."""
    return random.Random(f"poses {seed}").sample(range(2**31), trials)
