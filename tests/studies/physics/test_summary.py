"""Estimates, intervals and the verdict."""

import math

import numpy as np
import pytest
from scipy import stats

from prism_motor.studies.physics.contenders import choose_contenders
from prism_motor.studies.physics.summary import (
    ArmSummary,
    Estimate,
    estimate,
    percent,
    text_table,
    verdict,
)
from prism_motor.studies.physics.targets import TARGETS


def summary(name, centre, low=None, high=None):
    error = Estimate(centre, low or centre * 0.9, high or centre * 1.1)
    errors = {part: {t.name: error for t in TARGETS} for part in ("test", "extrapolation")}
    return ArmSummary(choose_contenders((name,))[0], 16_000, 0.01, False, errors)


def test_interval_is_the_t_interval_of_the_logarithms():
    values = [0.01, 0.02, 0.04, 0.03]
    found = estimate(values)
    logs = np.log(values)
    low, high = stats.t.interval(0.95, 3, logs.mean(), stats.sem(logs))
    assert (found.centre, found.low, found.high) == pytest.approx(np.exp([logs.mean(), low, high]))


def test_interval_covers_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(0)
    found = [estimate(np.exp(generator.normal(-3, 0.4, 5)).tolist()) for _ in range(2000)]
    covered = np.mean([entry.low <= math.exp(-3) <= entry.high for entry in found])
    assert 0.935 < covered < 0.965


def test_a_diverged_seed_is_not_averaged_away():
    found = estimate([0.1, None, 0.2])
    assert found.centre == math.inf
    assert str(found) == "diverged"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.00123, "0.12"), (0.0456, "4.6"), (0.456, "46"), (0.0996, "10"), (1.3, "130")],
)
def test_percent(share, text):
    assert percent(share) == text


def test_the_verdict_follows_the_numbers():
    clear = verdict([summary("mlp", 0.10), summary("prism2", 0.01)])
    assert clear[0][0] == "PRISM degree 2 against MLP:"
    assert "test error lower for Joint power (net)" in clear[0][1]
    assert "lowest test error PRISM degree 2, 1.0 [0.90, 1.1] %" in clear[1][1]
    assert "no other interval overlaps" in clear[1][1]

    lost = verdict([summary("mlp", 0.01), summary("prism2", 0.10)])
    assert "test error higher for Joint power (net)" in lost[0][1]
    assert "lowest test error MLP" in lost[1][1]

    level = verdict([summary("mlp", 0.100), summary("prism2", 0.101)])
    assert "not separable for Joint power (net)" in level[0][1]
    assert "not separable from PRISM degree 2" in level[1][1]


def test_the_larger_mlp_cannot_win_the_equal_comparison():
    found = verdict([summary("mlp", 0.10), summary("mlp2x", 0.01)])
    assert "lower for" in found[0][1]
    assert "lowest test error MLP, 10 [9.0, 11] %" in found[1][1]


def test_diverged_arms_in_the_verdict_and_the_table():
    broken = summary("mlp", math.inf, math.inf, math.inf)
    assert verdict([broken])[0][1] == " every arm diverged."
    assert text_table([broken, summary("prism2", 0.1)]).count("diverged") == 2 * len(TARGETS)
    assert "lowest test error PRISM" in verdict([broken, summary("prism2", 0.1)])[1][1]
