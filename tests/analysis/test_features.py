import numpy as np
import pytest
import torch

from prism_motor.analysis.features import feature_names, read_features
from tests.analysis.policies import small_policy


@pytest.fixture(scope="module")
def observations():
    return np.random.default_rng(0).normal(size=(5000, 235)).astype(np.float32)


def trunk_of(policy):
    return policy.module.mlp if policy.config.actor.name == "mlp" else policy.module.mlp[1]


@pytest.mark.parametrize("arm", ["mlp", "prism", "prism-residual"])
def test_names_and_last_layer(make_policy, observations, arm):
    policy = make_policy(arm)
    found = read_features(policy, observations)
    latents = [] if arm == "mlp" else ["first_order", "polynomial", "conditioner"]
    assert list(found) == ["raw", *latents, "hidden_1", "hidden_2"] == feature_names(policy)
    np.testing.assert_array_equal(found["raw"], observations)
    assert (found["hidden_1"].shape[1], found["hidden_2"].shape[1]) == (32, 16)
    with torch.no_grad():
        action = trunk_of(policy)[-1](torch.from_numpy(found["hidden_2"]))
    np.testing.assert_allclose(action, policy(torch.from_numpy(observations)), atol=1e-5)


def test_names_and_last_layers_of_a_polynomial_after_the_mlp(make_policy, observations):
    policy = make_policy("prism-after")
    found = read_features(policy, observations)
    names = ["raw", "hidden_1", "hidden_2", "first_order", "polynomial"]
    assert list(found) == names == feature_names(policy)
    layer, linear = policy.module.mlp[-1]
    hidden = torch.from_numpy(found["hidden_2"])
    with torch.no_grad():
        np.testing.assert_allclose(found["first_order"], layer.factors(hidden)[0], atol=1e-5)
        np.testing.assert_allclose(found["polynomial"], layer(hidden), atol=1e-5)
        action = linear(torch.from_numpy(found["polynomial"]))
    np.testing.assert_allclose(action, policy(torch.from_numpy(observations)), atol=1e-5)


def test_what_bypasses_the_conditioner_is_in_its_output(observations):
    policy = small_policy("prism", bypass=["clock"])
    found = read_features(policy, observations)
    assert list(found)[:4] == ["raw", "first_order", "polynomial", "conditioner"]
    assert found["polynomial"].shape[1] == 6
    assert found["conditioner"].shape[1] == 6 + 5 * 2
    normalised = policy.actor.obs_normalizer(torch.from_numpy(observations))
    np.testing.assert_array_equal(found["conditioner"][:, 6:8], normalised[:, :2])


def test_latents_of_the_gated_actor_follow_the_formula(make_policy, observations):
    policy = make_policy("prism")
    layer = policy.actor.encoder.interaction
    x = policy.actor.obs_normalizer(torch.from_numpy(observations))
    with torch.no_grad():
        first = x @ layer.weight[0].T + layer.bias[0]
        second = x @ layer.weight[1].T + layer.bias[1]
        product = first * (1 + layer.gate[0] * second)
    found = read_features(policy, observations)
    np.testing.assert_allclose(found["first_order"], first, atol=1e-4)
    np.testing.assert_allclose(found["polynomial"], product, atol=1e-3)
    assert np.abs(found["polynomial"] - found["first_order"]).max() > 0.1


def test_latents_of_the_residual_actor_follow_the_formula(make_policy, observations):
    policy = make_policy("prism-residual")
    encoder = policy.actor.encoder
    x = policy.actor.obs_normalizer(torch.from_numpy(observations))
    with torch.no_grad():
        first = encoder.factors[0](encoder.lift(x))
        polynomial = first + encoder.factors[1](encoder.lift(x)) * encoder.states[0](first)
    found = read_features(policy, observations)
    np.testing.assert_allclose(found["first_order"], first, atol=1e-4)
    np.testing.assert_allclose(found["polynomial"], polynomial, atol=1e-4)


def test_reading_leaves_no_hooks(make_policy, observations):
    policy = make_policy("prism")
    read_features(policy, observations)
    assert not any(part._forward_hooks for part in policy.module.modules())
