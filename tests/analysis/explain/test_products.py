"""Products one by one, against networks whose weights were edited by hand."""

import copy

import pytest
import torch

from prism_motor.analysis.explain.names import branch_forms, name_inputs, name_products
from prism_motor.analysis.explain.products import products_of
from tests.analysis.policies import small_policy

KINDS = {
    "prism": ("prism", {}),
    "prism, degree 3": ("prism", {"degree": 3}),
    "prism-residual": ("prism-residual", {}),
    "prism-residual, degree 3": ("prism-residual", {"degree": 3}),
}


@pytest.fixture(params=KINDS)
def policy(request):
    arm, options = KINDS[request.param]
    return small_policy(arm, **options)


@pytest.fixture
def observations():
    return torch.randn(20, 235)


def remove_by_hand(encoder, product):
    """Edit the weights so that one product is gone."""
    if hasattr(encoder, "interaction"):
        encoder.interaction.gate[:, product] = 0.0
        return
    stage, feature = divmod(product, 6)
    encoder.factors[stage + 1].weight[feature] = 0.0
    encoder.factors[stage + 1].bias[feature] = 0.0


@torch.no_grad()
def test_targets_are_the_scaled_actions(policy, observations):
    products = products_of(policy)
    parts = products.read(observations)
    torch.testing.assert_close(
        products.targets(parts, products.features(parts)), 0.25 * policy(observations)
    )


@torch.no_grad()
def test_removing_a_product_is_editing_the_weights(policy, observations):
    products = products_of(policy)
    parts = products.read(observations)
    for product in range(products.count):
        keep = torch.ones(products.count)
        keep[product] = 0.0
        module = copy.deepcopy(policy.module)
        remove_by_hand(module.mlp[0], product)
        torch.testing.assert_close(
            products.targets(parts, products.features(parts, keep)), 0.25 * module(observations)
        )


@torch.no_grad()
def test_without_all_products_the_first_order_is_left(policy, observations):
    products = products_of(policy)
    parts = products.read(observations)
    nothing = products.features(parts, torch.zeros(products.count))
    torch.testing.assert_close(nothing, products.first_order(parts))


@torch.no_grad()
def test_values_add_up_to_the_features(policy, observations):
    products = products_of(policy)
    parts = products.read(observations)
    added = products.values(parts).unflatten(-1, (-1, products.latent)).sum(-2)
    torch.testing.assert_close(products.first_order(parts) + added, products.features(parts))


def test_forms_are_the_slopes_of_the_branches(policy):
    """Central differences are exact for the quadratic branches of a residual actor too."""
    products = products_of(policy)
    centre = torch.randn(235)
    forms = branch_forms(products, centre)
    assert forms.shape == (len(forms), products.count, 235)
    for index in (0, 100, 234):
        step = torch.zeros(235)
        step[index] = 0.5
        with torch.no_grad():
            there, here = (
                products.branches(products.read((centre + sign * step).unsqueeze(0)))[0]
                for sign in (1, -1)
            )
        torch.testing.assert_close(forms[..., index], there - here, atol=1e-4, rtol=1e-3)


def test_a_single_known_product_gets_its_names():
    policy = small_policy()
    layer = policy.actor.encoder.interaction
    names = name_inputs(policy.config.task)
    keys = [name.key for name in names]
    one, other = keys.index("dq_left_hip_pitch[t]"), keys.index("dq_left_hip_pitch[t-1]")
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[0, 2, one] = 1.0
        layer.weight[1, 2, other] = -2.0
        layer.gate.fill_(0.5)
    products = products_of(policy)
    # The normaliser's slope is undone by a scale that is its inverse.
    slope = policy.actor.obs_normalizer._std.squeeze(0) + policy.actor.obs_normalizer.eps
    named = name_products(products, names, branch_forms(products, torch.zeros(235)), slope)
    assert str(named[2]) == "dq L hip pitch (t) × dq L hip pitch (t-1)"
    assert named[2].role == "velocity memory"
    assert named[2].share == pytest.approx(1.0)
    assert named[2].strength == pytest.approx(1.0)
    assert all(product.strength == 0 for product in named if product.index != 2)


@pytest.mark.parametrize(
    ("arm", "options", "reason"),
    [
        ("mlp", {}, "a plain MLP forms no explicit products"),
        ("prism", {"degree": 1}, "degree 1 is linear"),
        ("prism-residual", {"degree": 1}, "degree 1 is linear"),
        ("prism", {"bound": 1.0}, "bound=1.0 is not a polynomial"),
        ("prism", {"interaction": "glu"}, "interaction='glu'"),
    ],
)
def test_policies_without_products_are_refused_with_the_reason(arm, options, reason):
    with pytest.raises(ValueError, match=reason):
        products_of(small_policy(arm, **options))
