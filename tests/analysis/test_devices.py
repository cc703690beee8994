"""Studies of policies on another device find what they find on the CPU."""

import numpy as np
import pytest
import torch

from prism_motor.analysis.explain.closed_loop import LinearReplacement, make_variants, walk
from prism_motor.analysis.explain.products import products_of
from prism_motor.analysis.explain.removals import removal_curve, remove_each
from prism_motor.analysis.features import read_conditioner, read_features
from prism_motor.analysis.live import TopInteractions
from prism_motor.analysis.probe.walking import untrained
from prism_motor.analysis.recording import record
from prism_motor.nn import PolynomialLayer
from prism_motor.nn.conditioner import PolynomialConditioner
from tests.analysis.policies import small_policy
from tests.devices import AWAY


@pytest.fixture
def observations():
    return torch.randn(20, 235)


# Indices of by-passed observations are tensors of the actor, too.
ACTORS = {
    "prism": {},
    "prism-by-pass": {"bypass": ["command", "clock"]},
    "prism-residual": {},
    "prism-residual-gated": {},
    "prism-after": {},
}


def make_policy(name, **options):
    return small_policy(name.removesuffix("-by-pass"), **ACTORS.get(name, {}), **options)


@pytest.mark.parametrize("name", ["mlp", *ACTORS])
def test_features(away, observations, name):
    policy = make_policy(name)
    expected = read_features(policy, observations)
    found = read_features(policy.to(AWAY), observations)
    assert found.keys() == expected.keys()
    for feature, values in expected.items():
        np.testing.assert_array_equal(found[feature], values)


def test_features_of_a_conditioner(away):
    conditioner, inputs = PolynomialConditioner(PolynomialLayer(6, 4), 5), torch.randn(7, 6)
    expected = read_conditioner(conditioner, inputs)
    found = read_conditioner(conditioner.to(AWAY), inputs)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_an_untrained_network_is_where_the_trained_one_is(away, observations):
    policy = small_policy("prism")
    expected = untrained(policy)(observations)
    found = untrained(policy.to(AWAY))
    assert found.device == AWAY
    assert torch.equal(found(observations), expected)


def test_rollouts(away):
    policy = small_policy("prism")
    settings = {"seed": 3, "envs": 2, "steps": 4}
    expected = record(policy, policy.config.task, **settings)
    found = record(policy.to(AWAY), policy.config.task, **settings)
    np.testing.assert_array_equal(found.actions.values, expected.actions.values)
    np.testing.assert_array_equal(found.features["hidden_2"], expected.features["hidden_2"])


@pytest.mark.parametrize("given", [True, False])
def test_live_products(away, observations, given):
    policy = small_policy("prism")
    chosen = observations if given else None
    expected = TopInteractions(policy, 4, chosen).update(observations[0])
    assert TopInteractions(policy.to(AWAY), 4, chosen).update(observations[0]) == expected


@pytest.mark.parametrize("name", ACTORS)
def test_removals_of_products(away, observations, name):
    policy, robots = make_policy(name, duration=0.2), np.arange(20) % 4
    order = torch.arange(6)
    found = []
    for device in ("cpu", AWAY):
        products = products_of(policy.to(device))
        parts = products.read(observations)
        replacement = LinearReplacement(products, parts, robots)
        variants = make_variants(products, order.to(device), 2, replacement, envs=2, seed=1)
        found.append(
            (
                remove_each(products, parts).cpu().tolist(),
                removal_curve(products, parts, order.to(device), order, draws=2, seed=1),
                replacement.held_out.cpu().tolist(),
                # Drawn and written down, so they are arrays of the CPU.
                products.gates() and products.gates()[0].numpy().tolist(),
                [
                    walk(policy, products, one, condition="nominal", seed=1, envs=2)
                    for one in variants.values()
                ],
            )
        )
    assert found[0] == found[1]
