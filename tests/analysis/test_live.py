"""The strongest products while a policy acts."""

import copy
import time

import pytest
import torch

from prism_motor.analysis.live import TopInteractions
from tests.analysis.explain.test_products import KINDS, remove_by_hand
from tests.analysis.policies import small_policy


@pytest.fixture(params=KINDS)
def policy(request):
    arm, options = KINDS[request.param]
    return small_policy(arm, **options)


@pytest.fixture
def observations():
    return torch.randn(20, 235)


def test_live_values_are_the_changes_of_the_target(policy, observations):
    top = TopInteractions(policy, 4, observations)
    found = top.update(observations[3])
    assert [name for name, _ in found] == top.names
    module = copy.deepcopy(policy.module)
    product = int(top._chosen[1])
    with torch.no_grad():
        remove_by_hand(module.mlp, product)
        moved = 0.25 * (module(observations[3:4]) - policy(observations[3:4])).norm()
    assert abs(found[1][1]) == pytest.approx(float(moved), rel=1e-3)


def test_live_order_is_by_effect_on_the_given_states(observations):
    policy = small_policy()
    top = TopInteractions(policy, 6, observations)
    moved = torch.tensor([[value for _, value in top.update(o)] for o in observations]).abs()
    assert moved.mean(0).tolist() == sorted(moved.mean(0).tolist(), reverse=True)
    assert len(TopInteractions(policy, 100).names) == 6


def test_live_costs_little_more_than_the_policy(observations):
    policy = small_policy(preset="g1")
    top, seen = TopInteractions(policy, 8), torch.randn(1, 705)

    def fastest(call):
        times = []
        for _ in range(30):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return min(times)

    pairs = [(fastest(lambda: top.update(seen[0])), fastest(lambda: policy(seen))) for _ in "123"]
    assert min(one / other for one, other in pairs) < 5
