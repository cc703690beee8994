"""Products by input group, on layers whose products are known."""

import pytest
import torch

from prism_motor.analysis.explain.groups import (
    PAIRS,
    group_masks,
    learned_strength,
    measure_groups,
    pair_terms,
    untrained_squares,
)
from prism_motor.analysis.explain.names import GROUPS, branch_forms, name_inputs
from prism_motor.analysis.explain.products import products_of
from tests.analysis.policies import small_policy


@pytest.fixture
def observations():
    return torch.randn(30, 235)


def masks_of(policy):
    return group_masks(name_inputs(policy.config.task))


def test_every_input_is_in_one_group():
    masks = masks_of(small_policy())
    assert masks.sum(0).tolist() == [1.0] * 235
    assert masks.sum(1).tolist() == [10, 15, 60, 60, 60, 15, 15]


def with_one_product(one, other):
    """A policy whose only product is that of two inputs."""
    policy = small_policy()
    keys = [name.key for name in name_inputs(policy.config.task)]
    layer = policy.actor.encoder.interaction
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
        layer.weight[0, 1, keys.index(one)] = 1.0
        layer.weight[1, 1, keys.index(other)] = 2.0
        layer.gate.fill_(0.5)
    return policy


@pytest.mark.parametrize(
    ("one", "other", "groups"),
    [
        ("dq_left_knee[t]", "clock_sin[t-1]", ("joint velocity", "gait clock")),
        ("command_yaw[t]", "roll[t]", ("orientation", "command")),
        ("q_left_knee[t]", "q_left_knee[t]", ("joint position", "joint position")),
    ],
)
def test_a_single_product_fills_a_single_cell(observations, one, other, groups):
    policy = with_one_product(one, other)
    products, names = products_of(policy), name_inputs(policy.config.task)
    forms = branch_forms(products, observations.mean(0))
    matrix = measure_groups(products, observations, names, forms, torch.ones(products.count))
    cell = tuple(sorted((GROUPS.index(group) for group in groups), reverse=True))
    for table in (matrix.effect, matrix.strength):
        filled = (table > 1e-6 * table.max()).nonzero().tolist()
        assert filled == [list(cell)]
    assert matrix.beyond < 1e-6
    # By hand: gate * weights / normaliser * input spreads; a square varies sqrt(2) as much.
    keys = [name.key for name in names]
    i, j = keys.index(one), keys.index(other)
    spread = observations.std(0) / (policy.actor.obs_normalizer._std[0] + 1e-2)
    expected = spread[i] * spread[j] * (2**0.5 if i == j else 1.0)
    assert float(matrix.strength[cell]) == pytest.approx(float(expected), rel=1e-3)


def test_the_effect_of_a_cell_is_that_of_taking_its_product_away(observations):
    policy = with_one_product("dq_left_knee[t]", "clock_sin[t-1]")
    products, names = products_of(policy), name_inputs(policy.config.task)
    matrix = measure_groups(
        products, observations, names, branch_forms(products, observations.mean(0)),
        torch.ones(products.count),
    )  # fmt: skip
    parts = products.read(observations)
    with torch.no_grad():
        features = products.features(parts)
        u, v = parts.factors[0][:, 1], parts.factors[1][:, 1]
        without = features.clone()
        without[:, 1] -= 0.5 * (u - u.mean()) * (v - v.mean())
        moved = products.targets(parts, features) - products.targets(parts, without)
    assert float(matrix.effect[3, 0]) == pytest.approx(float(moved.norm(dim=-1).mean()), rel=1e-3)


@pytest.mark.parametrize("kind", ["prism", "prism-residual"])
@torch.no_grad()
def test_second_order_parts_are_exact(kind, observations):
    """Along a line the even part of a cubic is constant plus second order."""
    policy = small_policy(kind, degree=3)
    products = products_of(policy)
    centre = observations.mean(0, keepdim=True)

    def features(x):
        return products.features(products.read(x))

    shift = observations - centre
    even = (features(centre + shift) + features(centre - shift)) / 2 - features(centre)
    total = sum(term for _, term in pair_terms(products, observations, masks_of(policy)))
    torch.testing.assert_close(total, even, atol=1e-4, rtol=1e-3)


def test_degree_three_goes_beyond_pairs(observations):
    policy = small_policy("prism", degree=3)
    products, names = products_of(policy), name_inputs(policy.config.task)
    forms = branch_forms(products, observations.mean(0))
    matrix = measure_groups(products, observations, names, forms, torch.ones(products.count))
    assert matrix.beyond > 1e-4
    with torch.no_grad():  # the product of all three deviations, by hand
        parts = products.read(observations)
        gate = policy.actor.encoder.interaction.gate
        u, v, w = (factor - factor.mean(0) for factor in parts.factors)
        features = products.features(parts)
        without = features - gate.prod(0) * u * v * w
        moved = products.targets(parts, features) - products.targets(parts, without)
    assert matrix.beyond == pytest.approx(float(moved.norm(dim=-1).mean()), rel=1e-2)


def test_untrained_weights_have_the_untrained_share():
    policy = small_policy()
    masks = masks_of(policy)
    scale = 0.2 + torch.rand(235)
    forms = (2 * torch.rand(2, 400, 235) - 1) * scale
    squares = learned_strength(forms, torch.zeros(2, 400), torch.ones(400), masks).square()
    expected = untrained_squares(scale, masks)
    ratio = (squares / squares.sum()) / (expected / expected.sum())
    cells = torch.tensor([float(ratio[pair]) for pair in PAIRS])
    torch.testing.assert_close(cells, torch.ones(len(PAIRS)), atol=0.25, rtol=0)


def test_inputs_that_never_change_have_no_share():
    policy = small_policy()
    products, names = products_of(policy), name_inputs(policy.config.task)
    still = torch.randn(30, 235)
    still[:, masks_of(policy)[1] > 0] = 0.3  # commands
    forms = branch_forms(products, still.mean(0))
    matrix = measure_groups(products, still, names, forms, torch.ones(products.count))
    assert matrix.concentration[2, 1].isnan()
    assert float(matrix.effect[2, 1]) < 1e-5
    assert float(matrix.concentration[2, 0]) > 0
