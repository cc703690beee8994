"""Comparisons against scipy, closed forms and rliable; Holm by hand."""

import numpy as np
import pytest
from scipy import stats

from prism_motor.statistics import compare, holm, probability_of_improvement

GATED = {1: 0.62, 2: 0.71, 3: 0.55, 4: 0.80, 5: 0.66}
MLP = {1: 0.58, 2: 0.60, 3: 0.57, 4: 0.69, 5: 0.61}


def test_comparison_is_the_paired_t_test():
    found = compare(GATED, MLP)
    assert found is not None
    ours, theirs = list(GATED.values()), list(MLP.values())
    test = stats.ttest_rel(ours, theirs)
    assert found.difference == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert found.sd == pytest.approx(np.std(np.subtract(ours, theirs), ddof=1))
    assert found.p_value == pytest.approx(test.pvalue)
    assert found.interval == pytest.approx(tuple(test.confidence_interval(0.95)))
    assert found.seeds == (1, 2, 3, 4, 5)
    assert found.unpaired == ()


def test_only_common_seeds_are_compared_and_the_rest_is_named():
    found = compare({**GATED, 7: 9.0}, {**MLP, 8: -9.0})
    assert found is not None
    assert found.difference == pytest.approx(compare(GATED, MLP).difference)
    assert found.unpaired == (7, 8)
    assert compare({1: 0.5}, {2: 0.4}) is None


def test_improvement_agrees_with_rliable():
    # rliable 1.2.0 (numpy 2.4.6, arch 7.2.0, pandas 2.3.3): probability_of_improvement of one task
    # with 4 000 stratified bootstrap samples.
    chance, interval = probability_of_improvement(list(GATED.values()), list(MLP.values()))
    assert chance == pytest.approx(0.72)
    assert interval == pytest.approx((0.32, 1.0), abs=0.04)  # steps of 1/25


def test_improvement_is_mann_whitney_with_ties_as_half():
    ours, theirs = [1.0, 2.0, 2.0, 5.0], [2.0, 2.0, 0.0]
    chance, _ = probability_of_improvement(ours, theirs)
    assert chance == pytest.approx(stats.mannwhitneyu(ours, theirs).statistic / 12)
    assert probability_of_improvement([1.0, 1.0], [1.0, 1.0]) == (0.5, None)
    assert probability_of_improvement([2.0, 3.0], [0.0, 1.0]) == (1.0, None)


def test_lower_may_be_better():
    higher, lower = compare(GATED, MLP), compare(GATED, MLP, higher_is_better=False)
    assert lower.difference == higher.difference
    assert lower.improvement == pytest.approx(1 - higher.improvement)
    assert lower.improvement_interval == pytest.approx(
        tuple(1 - x for x in reversed(higher.improvement_interval)), abs=0.02
    )


def test_a_single_common_seed_gives_a_difference_and_no_claim():
    found = compare({1: 0.7}, {1: 0.5})
    assert found.difference == pytest.approx(0.2)
    assert found.improvement == 1.0
    assert (found.sd, found.interval, found.p_value, found.improvement_interval) == (None,) * 4


def test_equal_differences_make_no_claim():
    found = compare({1: 1.0, 2: 1.0, 3: 1.0}, {1: 0.9, 2: 0.9, 3: 0.9})
    assert (found.sd, found.interval, found.p_value) == (0.0, None, None)


def test_holm_by_hand():
    # Sorted: 0.01 * 4, 0.02 * 3, 0.03 * 2 (not below the one before), 0.5 * 1.
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])


def test_holm_counts_only_what_was_tested():
    assert holm([None, 0.02, None]) == [None, 0.02, None]
    assert holm([]) == []
    with pytest.raises(ValueError, match=r"got 1\.5"):
        holm([0.1, 1.5])


def test_holm_keeps_the_rate_of_false_claims():
    generator = np.random.default_rng(0)
    tables = generator.uniform(size=(2000, 6))
    wrong = np.mean([min(holm(list(row))) < 0.05 for row in tables])
    assert wrong == pytest.approx(0.05, abs=0.015)
