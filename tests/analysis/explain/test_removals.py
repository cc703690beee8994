"""Removing products, and what could take their place."""

import numpy as np
import pytest
import torch

from prism_motor.analysis.explain.products import products_of
from prism_motor.analysis.explain.removals import (
    curve_counts,
    measure_effect,
    removal_curve,
    remove_each,
    remove_together,
)
from tests.analysis.policies import small_policy

ROBOTS = np.repeat(np.arange(8), 60)


def states(count=480):
    return torch.randn(count, 235)


def test_effects_are_distances_and_shares():
    change = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    targets = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    effect = measure_effect(change, targets)
    assert effect.distance == pytest.approx(2.5)
    assert effect.absolute == pytest.approx(7 / 4)
    assert effect.variance_share == pytest.approx((4.5 + 8.0) / 2.0)


@torch.no_grad()
def test_one_at_a_time_is_together_with_one():
    products = products_of(small_policy())
    parts = products.read(states(20))
    changes = remove_each(products, parts)
    assert changes.shape == (6, 20, 12)
    for index in range(6):
        torch.testing.assert_close(changes[index], remove_together(products, parts, [index]))


def test_curves_end_where_nothing_is_left_and_repeat():
    products = products_of(small_policy())
    parts = products.read(states(40))
    order = remove_each(products, parts).norm(dim=-1).mean(-1).argsort(descending=True)
    one, two = (removal_curve(products, parts, order, order, draws=5, seed=3) for _ in "ab")
    assert one == two
    assert one.counts == (1, 2, 5, 6)
    assert one.by_effect == one.by_strength
    assert one.by_effect[-1] == one.random[-1] == one.random_low[-1] == one.random_high[-1]
    assert one.by_effect[0] >= one.random_high[0]
    assert removal_curve(products, parts, order, order, draws=5, seed=4).random != one.random


def test_curve_counts():
    assert curve_counts(96) == [1, 2, 5, 10, 20, 50, 96]
    assert curve_counts(10) == [1, 2, 5, 10]
    assert curve_counts(1) == [1]
