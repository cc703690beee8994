"""Means and rates against scipy and closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

from prism_motor.statistics import Interval, estimate, geometric_estimate, t_interval, wilson

SEEDS = [0.131, 0.127, 0.142, 0.120, 0.136]


def test_estimate_is_mean_sample_sd_and_t_interval():
    found = estimate(SEEDS)
    assert found.count == 5
    assert found.centre == pytest.approx(np.mean(SEEDS))
    assert found.sd == pytest.approx(np.std(SEEDS, ddof=1))
    expected = stats.t.interval(0.95, df=4, loc=np.mean(SEEDS), scale=stats.sem(SEEDS))
    assert found.interval == pytest.approx(expected)
    narrow = t_interval(SEEDS, confidence=0.5)
    assert narrow is not None
    assert found.interval is not None
    assert found.interval.low < narrow.low < found.centre < narrow.high < found.interval.high


def test_a_t_interval_covers_as_often_as_it_says():
    generator = np.random.default_rng(0)
    intervals = [t_interval(list(row)) for row in generator.normal(3.0, 2.0, size=(1000, 3))]
    covered = np.mean([interval is not None and interval.contains(3.0) for interval in intervals])
    assert covered == pytest.approx(0.95, abs=0.02)  # three standard errors


def test_one_seed_has_no_spread_and_no_interval():
    found = estimate([0.131])
    assert (found.centre, found.sd, found.interval, found.count) == (0.131, None, None, 1)


def test_equal_seeds_do_not_make_a_certain_claim():
    assert estimate([1.0] * 5).sd == 0.0
    assert estimate([1.0] * 5).interval is None
    assert t_interval([0.1 + 0.2, 0.3]) is None  # equal up to rounding


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_no_values_and_values_that_are_not_finite_are_refused(values):
    with pytest.raises(ValueError, match=r"At least one value|must be finite"):
        estimate(values)


def test_wilson_interval_by_its_formula():
    for successes, trials in ((200, 200), (0, 10), (37, 50)):
        z, rate = 1.959963984540054, successes / trials
        centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
        half = (
            z / (1 + z * z / trials) * np.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials**2))
        )
        found = wilson(successes, trials)
        assert found == pytest.approx((centre - half, centre + half), abs=1e-9)
        assert isinstance(found, Interval)


@pytest.mark.parametrize("given", [(1, 0), (3, 2), (-1, 5)])
def test_impossible_rates_are_refused(given):
    with pytest.raises(ValueError, match=rf"got {given[0]} of {given[1]}"):
        wilson(*given)


def test_confidence_must_be_a_probability():
    with pytest.raises(ValueError, match="between 0 and 1, got 95"):
        wilson(1, 2, confidence=95)


def test_geometric_interval_is_the_t_interval_of_the_logarithms():
    values = [0.01, 0.02, 0.04, 0.03]
    found = geometric_estimate(values)
    logs = np.log(values)
    low, high = stats.t.interval(0.95, 3, logs.mean(), stats.sem(logs))
    assert (found.centre, *found.interval) == pytest.approx(np.exp([logs.mean(), low, high]))
    assert geometric_estimate([0.1, 0.1]).interval is None


def test_geometric_interval_covers_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(0)
    draws = np.exp(generator.normal(-3, 0.4, (2000, 5))).tolist()
    found = [geometric_estimate(values).interval for values in draws]
    covered = np.mean([interval.contains(math.exp(-3)) for interval in found])
    assert 0.935 < covered < 0.965
