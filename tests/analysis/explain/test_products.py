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
    "prism-residual-gated": ("prism-residual-gated", {}),
    "prism-residual-gated, degree 3": ("prism-residual-gated", {"degree": 3}),
    "prism-after": ("prism-after", {}),
    "prism-after, degree 3": ("prism-after", {"degree": 3}),
    "prism, by-pass": ("prism", {"bypass": ["command", "clock"]}),
    "prism-residual, by-pass": ("prism-residual", {"bypass": ["clock"]}),
}


@pytest.fixture(params=KINDS)
def policy(request):
    arm, options = KINDS[request.param]
    return small_policy(arm, **options)


@pytest.fixture
def observations():
    return torch.randn(20, 235)


def remove_by_hand(network, product):
    """Edit the weights so that one product is gone."""
    if isinstance(network[0], torch.nn.Linear):
        network[-1][0].gate[:, product] = 0.0
        return
    encoder = getattr(network[0], "encoder", network[0])
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
        remove_by_hand(module.mlp, product)
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
    if not products.affine:
        return  # the next test
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


def test_forms_behind_hidden_layers_are_mean_slopes():
    products = products_of(small_policy("prism-after"))
    products.actor.double()
    states = torch.randn(30, 235, dtype=torch.double)
    forms = branch_forms(products, states)
    assert forms.shape == (2, 8, 235)
    for index in (0, 100, 234):
        step = torch.zeros(235, dtype=torch.double)
        step[index] = 1e-5
        with torch.no_grad():
            there, here = (
                products.branches(products.read(states + sign * step)).mean(0) for sign in (1, -1)
            )
        torch.testing.assert_close(forms[..., index], (there - here) / 2e-5, atol=1e-6, rtol=1e-4)
    one = branch_forms(products, states[0])
    assert not torch.allclose(one, forms)  # the hidden layers are not linear


def test_bypassed_inputs_are_in_no_product():
    policy = small_policy("prism", bypass=["command", "clock"])
    products, names = products_of(policy), name_inputs(policy.config.task)
    forms = branch_forms(products, torch.randn(5, 235))
    passed = torch.tensor([name.group in ("command", "gait clock") for name in names])
    assert passed.sum() == 5 * 5
    assert not forms[..., passed].any()
    assert forms[..., ~passed].any(0).any(0).all()
    observations = torch.randn(4, 235)
    moved = observations + passed.float()
    with torch.no_grad():
        parts, other = products.read(observations), products.read(moved)
        assert torch.equal(products.features(parts), products.features(other))
        assert not torch.equal(policy(observations), policy(moved))


def test_a_known_product_behind_hidden_layers_gets_its_names():
    """One hidden feature follows a velocity now, another the same a frame ago."""
    policy = small_policy("prism-after")
    names = name_inputs(policy.config.task)
    keys = [name.key for name in names]
    one, other = keys.index("dq_left_hip_pitch[t]"), keys.index("dq_left_hip_pitch[t-1]")
    mlp = policy.actor.mlp
    with torch.no_grad():
        for part in (mlp[0], mlp[2]):
            part.weight.zero_()
        mlp[0].weight[3, one] = mlp[0].weight[5, other] = 1.0
        mlp[2].weight[1, 3] = mlp[2].weight[4, 5] = 1.0
        layer = mlp[-1][0]
        layer.weight[1].zero_()
        layer.weight[1, 1, 4] = 2.0
        layer.gate.fill_(0.5)
    products = products_of(policy)
    states = torch.randn(50, 235)
    named = name_products(products, names, branch_forms(products, states), states.std(0))
    assert str(named[1]) == "dq L hip pitch (t) × dq L hip pitch (t-1)"
    assert named[1].share == pytest.approx(1.0)
    assert named[1].strength == max(product.strength for product in named) > 0


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
        ("prism-after", {"degree": 1}, "degree 1 is linear"),
        ("prism-after", {"bound": 1.0}, "bound=1.0 is not a polynomial"),
        ("prism", {"interaction": "glu"}, "interaction='glu'"),
    ],
)
def test_policies_without_products_are_refused_with_the_reason(arm, options, reason):
    with pytest.raises(ValueError, match=reason):
        products_of(small_policy(arm, **options))
