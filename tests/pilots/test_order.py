"""The order of trials: paired, balanced and seeded."""

from collections import Counter
from itertools import groupby

import pytest

from prism_motor.pilots.order import draw_poses, make_order


def blocks(order):
    return [list(group) for _, group in groupby(order, key=lambda slot: slot.pose)]


@pytest.mark.parametrize(
    ("arms", "trials", "policies"), [("AB", 10, 1), ("AB", 7, 1), ("ABC", 9, 3), ("ABCD", 10, 2)]
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_arm_is_at_every_pose_and_everywhere_in_its_block(arms, trials, policies, seed):
    order = make_order(arms, trials, policies, seed)
    assert [slot.number for slot in order] == list(range(1, len(arms) * trials + 1))
    found = blocks(order)
    assert len(found) == trials
    for block in found:
        assert {slot.arm for slot in block} == set(arms)
        assert len({slot.policy for slot in block}) == 1
    # In the whole, and for every policy alone, each place has each arm equally often, up to one.
    for chosen in [found, *([b for b in found if b[0].policy == p] for p in range(policies))]:
        for place in range(len(arms)):
            counts = Counter(block[place].arm for block in chosen)
            counts.update(dict.fromkeys(arms, 0))
            assert max(counts.values()) - min(counts.values()) <= 1
    shares = Counter(slot.policy for slot in order)
    assert len(set(shares.values())) == 1 or trials % policies


def test_half_of_ten_pairs_begin_with_each_arm():
    order = make_order("AB", 10, 1, seed=3)
    assert Counter(block[0].arm for block in blocks(order)) == {"A": 5, "B": 5}


def test_the_seed_draws_the_order_and_the_poses():
    first = {tuple(slot.arm for slot in make_order("AB", 10, 1, seed)) for seed in range(10)}
    assert len(first) > 5
    assert make_order("ABC", 6, 2, 5) == make_order("ABC", 6, 2, 5)
    poses = draw_poses(50, 7)
    assert poses == draw_poses(50, 7) != draw_poses(50, 8)
    assert len(set(poses)) == 50
