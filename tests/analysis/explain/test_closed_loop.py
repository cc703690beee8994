"""Removing products, and what could take their place."""

import numpy as np
import pytest
import torch

from prism_motor.analysis.explain.closed_loop import (
    LinearReplacement,
    make_variants,
    summarise_walks,
    walk,
)
from prism_motor.analysis.explain.products import products_of
from prism_motor.analysis.explain.removals import (
    measure_effect,
)
from prism_motor.locomotion.evaluation import Protocol, evaluate
from tests.analysis.policies import small_policy

ROBOTS = np.repeat(np.arange(8), 60)


def states(count=480):
    return torch.randn(count, 235)


def linear_policy():
    """A policy whose second factor is a constant, so that its products are linear."""
    policy = small_policy()
    with torch.no_grad():
        policy.actor.encoder.interaction.weight[1] = 0.0
        policy.actor.encoder.interaction.bias[1] = 2.0
    return policy


def test_a_linear_map_replaces_linear_products_and_no_others():
    shares = {}
    for name, policy in (("linear", linear_policy()), ("products", small_policy())):
        products = products_of(policy)
        parts = products.read(states())
        with torch.no_grad():
            targets = products.targets(parts, products.features(parts))
            replacement = LinearReplacement(products, parts, ROBOTS)
            bare = products.targets(parts, products.first_order(parts))
            guessed = products.targets(parts, replacement.held_out)
            again = products.targets(parts, replacement(parts))
        shares[name] = {
            "removed": measure_effect(targets - bare, targets).variance_share,
            "held out": measure_effect(targets - guessed, targets).variance_share,
            "fitted": measure_effect(targets - again, targets).variance_share,
        }
    assert shares["linear"]["removed"] > 0.01
    assert shares["linear"]["held out"] < 1e-3 * shares["linear"]["removed"]
    assert shares["linear"]["fitted"] < 1e-3 * shares["linear"]["removed"]
    # Products of independent inputs are not linear at all.
    assert shares["products"]["held out"] > 0.7 * shares["products"]["removed"]


def test_walking_with_all_products_is_the_policy():
    policy = small_policy(duration=0.1)
    products = products_of(policy)
    order = torch.arange(products.count)
    variants = make_variants(products, order, 2, products.first_order, envs=3, seed=0)
    settings = {"condition": "nominal", "seed": 5, "envs": 3}
    found = {title: walk(policy, products, v, **settings) for title, v in variants.items()}
    task = policy.config.task
    whole = summarise_walks(
        evaluate(policy, task, "nominal", seed=5, protocol=Protocol(envs=3, episodes=1))
    )
    assert list(found) == [
        "whole policy",
        "without 2 random products",
        "without the 2 strongest",
        "without any product",
        "linear map instead of products",
    ]
    error = "linear_error"
    assert found["whole policy"].spreads[error].mean == pytest.approx(
        whole.spreads[error].mean, abs=1e-5
    )
    # Here the replacement adds nothing, which is the same as no products.
    bare = found["without any product"].spreads[error].mean
    assert found["linear map instead of products"].spreads[error].mean == pytest.approx(bare)
    assert bare != pytest.approx(whole.spreads[error].mean, abs=1e-4)


def test_every_robot_loses_its_own_random_products():
    policy = small_policy()
    products = products_of(policy)
    variants = make_variants(products, torch.arange(6), 3, products.first_order, envs=5, seed=0)
    parts = products.read(states(5))
    with torch.no_grad():
        features = variants["without 3 random products"](parts)
        removed = (features - products.first_order(parts)).abs() < 1e-7
    assert removed.sum(1).tolist() == [3] * 5
    assert len({tuple(row) for row in removed.tolist()}) > 1
