"""Training one network."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from prism_motor.nn import INTERACTIONS, PolynomialLayer, count_parameters
from prism_motor.studies.fitting import (
    Standardised,
    learning_rate_factor,
    overall,
    unexplained,
)
from prism_motor.studies.physics.config import QUICK, PhysicsConfig
from prism_motor.studies.physics.robot import TARGETS, target_columns
from prism_motor.studies.physics.training import (
    ARMS,
    FitJob,
    choose_arms,
    fit,
    pair_strength,
)

from .conftest import TINY


@pytest.fixture(scope="module")
def data(tiny_dataset):
    return Standardised(tiny_dataset)


def arm(name):
    return choose_arms((name,))[0]


def without_time(entry):
    return {key: value for key, value in entry.items() if key != "seconds"}


@pytest.mark.parametrize("name", ["mlp-matched", "prism"])
def test_same_seed_same_numbers_other_seed_other_numbers(data, name):
    first, again, other = (
        without_time(fit(FitJob(name, seed, 1e-2), arm(name), TINY, data)) for seed in (1, 1, 2)
    )
    assert first == again
    assert first["test"] != other["test"]


def test_training_learns(data):
    short, long = (
        fit(
            FitJob("mlp-matched", 1, 1e-2),
            arm("mlp-matched"),
            replace(QUICK, updates=updates),
            data,
        )
        for updates in (3, 300)
    )
    assert long["validation"]["joint_power"] < 0.5 * short["validation"]["joint_power"]
    assert long["test"]["kinetic_energy"] < 0.5 * short["test"]["kinetic_energy"]
    assert [step for step, _ in long["curve"]] == [100, 200, 300]


@pytest.mark.parametrize("steps", [1, 7, 2000])
def test_learning_rate_rises_and_falls_to_zero(steps):
    factors = [learning_rate_factor(step, steps) for step in range(steps + 1)]
    assert all(0 < factor <= 1 for factor in factors[:-1])
    assert factors[-1] == pytest.approx(0)
    if steps == 2000:
        assert factors[0] == 0.005
        assert factors.index(max(factors)) == pytest.approx(200, abs=2)


def test_inputs_and_targets_are_standardised_on_the_training_part(data, tiny_dataset):
    for tensor in data.train:
        assert tensor.mean(0).abs().max() < 1e-5
        assert tensor.std(0, correction=0).sub(1).abs().max() < 1e-5
    restored = data.in_units(data.test[1])
    np.testing.assert_allclose(restored, tiny_dataset.test.targets, rtol=1e-3, atol=1e-4)


def test_unexplained_share_of_known_predictors(data):
    (x, y), columns = data.test, target_columns()

    class Constant(nn.Module):
        def forward(self, x):
            return y.mean(0).expand(len(x), -1)

    class Perfect(nn.Module):
        def forward(self, x):
            return y

    assert unexplained(Constant(), x, y, columns) == pytest.approx(
        {t.name: 1.0 for t in TARGETS}, rel=1e-4
    )
    assert unexplained(Perfect(), x, y, columns) == {t.name: 0.0 for t in TARGETS}


def test_divergence_is_reported_not_hidden(data):
    class Broken(nn.Module):
        def forward(self, x):
            return torch.full((len(x), 8), math.nan)

    shares = unexplained(Broken(), *data.test, target_columns())
    assert set(shares.values()) == {None}
    assert overall(shares) is None
    assert overall({"a": 0.1, "b": 0.001}) == pytest.approx(0.01)


def test_pair_strength_names_a_planted_product():
    """One feature x_3 * x_5, read with weight 2 by one head unit."""
    layer = PolynomialLayer(6, 1, 2, gate_init=1.0)
    reader = nn.Linear(1, 1)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
        layer.bias[1] = -1  # removes the first-order path: psi = x_3 * (1 + x_5 - 1)
        layer.weight[0, 0, 3] = layer.weight[1, 0, 5] = 1.0
        reader.weight.fill_(2.0)
    expected = torch.zeros(6, 6, dtype=torch.float64)
    expected[3, 5] = expected[5, 3] = 2.0
    torch.testing.assert_close(pair_strength(nn.Sequential(layer, reader)), expected)


def test_prism_reports_its_products(data):
    entry = fit(FitJob("prism", 1, 1e-2), arm("prism"), TINY, data)
    assert np.shape(entry["pair_strength"]) == (12, 12)
    assert all(name[:2] in ("q_", "dq", "ta") for p in entry["products"] for name in p["inputs"])
    assert "products" not in fit(FitJob("mlp-matched", 1, 1e-2), arm("mlp-matched"), TINY, data)


@pytest.mark.parametrize("arm", ARMS, ids=lambda c: c.name)
def test_every_arm_has_its_budget_within_one_percent(arm):
    network = arm.make(12, 8, PhysicsConfig().budget, PhysicsConfig().head)
    budget = PhysicsConfig().budget * (2 if arm.name == "mlp-large" else 1)
    assert abs(count_parameters(network) - budget) <= 0.01 * budget
    assert network(torch.randn(5, 12)).shape == (5, 8)


def test_arms_of_equal_size_share_the_head():
    for arm in ARMS:
        if arm.budget_scale == 1.0:
            linears = [m for m in arm.make(12, 8, 16_000, 64) if isinstance(m, nn.Linear)]
            assert [m.out_features for m in linears[-3:]] == [64, 64, 8]


def test_every_interaction_of_the_library_takes_part():
    used = {arm.interaction for arm in ARMS}
    assert used - {None} == set(INTERACTIONS) - {
        "linear",  # PRISM of degree 1
        "scaled",  # an arm of the laboratory
    }


def test_only_the_larger_mlp_is_larger():
    assert [c.name for c in ARMS if c.budget_scale != 1.0] == ["mlp-large"]


def test_an_impossible_budget_is_refused():
    with pytest.raises(ValueError, match="no width comes within 1 % of 100 parameters"):
        ARMS[0].make(12, 8, 100, 64)


def test_choosing_by_name_keeps_the_order():
    assert [c.name for c in choose_arms(("prism", "mlp-matched"))] == ["mlp-matched", "prism"]
    assert choose_arms(("prism2", "mlp")) == choose_arms(("prism", "mlp-matched"))  # former names
    assert choose_arms(()) == ARMS
    with pytest.raises(ValueError, match=r"Unknown arm 'prism4'.*Did you mean"):
        choose_arms(("prism4",))
