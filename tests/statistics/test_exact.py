"""Exact tests, intervals of differences, power and agreement, against independent computation."""

import itertools
from math import comb

import numpy as np
import pytest
from scipy import stats

from prism_motor._checks import InputError
from prism_motor.statistics import (
    Pairs,
    boschloo,
    clopper_pearson,
    fisher,
    kappa,
    mcnemar,
    newcombe,
    newcombe_paired,
    power_paired,
    power_unpaired,
    wilson,
)


def fisher_by_hand(a, n, b, m):
    """Sum the tables with the same margins that are no more likely than the one seen."""
    weights = {
        k: comb(n, k) * comb(m, a + b - k) for k in range(max(0, a + b - m), min(n, a + b) + 1)
    }
    seen = weights[a]
    return sum(w for w in weights.values() if w <= seen) / sum(weights.values())


def boschloo_by_hand(a, n, b, m):
    """Twice the largest chance, over the common rate, of a one-sided Fisher p as small."""
    i, j = np.arange(n + 1)[:, None], np.arange(m + 1)[None, :]
    rates = np.linspace(0, 1, 2001)
    one = stats.binom.pmf(np.arange(n + 1)[:, None], n, rates)
    two = stats.binom.pmf(np.arange(m + 1)[:, None], m, rates)
    sides = []
    for fishers in (
        stats.hypergeom.cdf(i, n + m, i + j, n),
        stats.hypergeom.sf(i - 1, n + m, i + j, n),
    ):
        extreme = (fishers <= fishers[a, b] * (1 + 1e-9)).astype(float)
        sides.append(np.einsum("ir,jr,ij->r", one, two, extreme).max())
    return min(1.0, 2 * min(sides))


@pytest.mark.parametrize(("a", "b"), [(3, 9), (0, 4), (5, 5), (10, 2), (7, 8)])
def test_fisher_and_boschloo_equal_their_definitions(a, b):
    assert fisher(a, 10, b, 10) == pytest.approx(fisher_by_hand(a, 10, b, 10))
    assert boschloo(a, 10, b, 10) == pytest.approx(boschloo_by_hand(a, 10, b, 10), rel=1e-4)
    assert boschloo(a, 10, b, 10) <= fisher(a, 10, b, 10) + 1e-9


def test_the_papers_pilot():
    """3 of 10 against 9 of 10."""
    assert fisher(3, 10, 9, 10) == pytest.approx(0.0198, abs=5e-5)
    # With the arms as the groups of fixed size. The transposed table, whose fixed numbers would be
    # those of successes and failures, gives 0.0070.
    assert boschloo(3, 10, 9, 10) == pytest.approx(0.0080, abs=5e-5)
    assert stats.boschloo_exact([[3, 7], [9, 1]]).pvalue == pytest.approx(0.0070, abs=5e-5)
    assert wilson(3, 10) == pytest.approx((0.11, 0.60), abs=0.005)
    assert wilson(9, 10) == pytest.approx((0.60, 0.98), abs=0.005)


def test_mcnemar_needs_six_discordant_pairs_all_one_way():
    assert mcnemar(6, 0) == pytest.approx(2 / 2**6)  # 0.031
    assert mcnemar(0, 5) == pytest.approx(2 / 2**5)
    assert mcnemar(7, 1) == pytest.approx(2 * (1 + 8) / 2**8)
    assert mcnemar(3, 3) == 1.0
    assert mcnemar(0, 0) == 1.0


def test_nothing_differs_where_all_succeed_or_all_fail():
    for successes in (0, 8):
        assert boschloo(successes, 8, successes, 8) == 1.0
        assert fisher(successes, 8, successes, 8) == 1.0


@pytest.mark.parametrize("numbers", [(11, 10, 1, 10), (1, 10, -1, 10), (0, 0, 0, 0)])
def test_counts_that_are_no_rates_are_refused(numbers):
    for function in (fisher, boschloo, newcombe):
        with pytest.raises(InputError, match="A rate needs"):
            function(*numbers)
    with pytest.raises(InputError, match="negative"):
        mcnemar(-1, 3)


def test_clopper_pearson_equals_the_beta_quantiles():
    found = clopper_pearson(3, 10)
    expected = stats.beta.ppf(0.025, 3, 8), stats.beta.ppf(0.975, 4, 7)
    assert found == pytest.approx(expected)
    wider = wilson(3, 10)
    assert found.low < wider.low
    assert found.high > wider.high


def test_newcombe_equals_his_example():
    """56 of 70 against 48 of 80 (Statistics in Medicine 17, 1998, table II, method 10)."""
    assert newcombe(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    low, high = newcombe(48, 80, 56, 70)
    assert (-high, -low) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_paired_intervals_cover_the_true_difference():
    """Exactly, over all outcomes of twelve pairs whose arms are correlated."""
    chances = np.array([0.35, 0.30, 0.10, 0.25])  # both, first, second, neither
    covered = 0.0
    for outcome in itertools.product(range(13), repeat=3):
        if sum(outcome) > 12:
            continue
        pairs = Pairs(*outcome, 12 - sum(outcome))
        weight = stats.multinomial.pmf(pairs, 12, chances)
        covered += weight * newcombe_paired(pairs).contains(chances[1] - chances[2])
    assert 0.93 < covered < 0.99


def test_paired_intervals_without_correlation_are_the_unpaired_ones():
    pairs = Pairs(6, 4, 3, 2)  # 6 x 2 = 4 x 3
    assert newcombe_paired(pairs) == pytest.approx(newcombe(10, 15, 9, 15))
    equal = newcombe_paired(Pairs(9, 0, 0, 6))
    unpaired = newcombe(9, 15, 9, 15)
    assert unpaired.low < equal.low < 0 < equal.high < unpaired.high


@pytest.mark.parametrize(
    ("trials", "rates", "expected"),
    [
        (10, (0.3, 0.9), 0.82),
        (10, (0.5, 0.9), 0.47),
        (10, (0.3, 0.7), 0.42),
        (20, (0.3, 0.9), 0.99),
        (20, (0.5, 0.9), 0.82),
        (20, (0.3, 0.7), 0.71),
    ],
)
def test_power_of_boschloos_test(trials, rates, expected):
    assert power_unpaired(boschloo, trials, rates) == pytest.approx(expected, abs=0.005)


def test_power_is_the_chance_of_a_small_p_value():
    for rates in ((0.3, 0.9), (0.6, 0.2), (0.5, 0.5)):
        by_hand = sum(
            stats.binom.pmf(a, 10, rates[0]) * stats.binom.pmf(b, 10, rates[1])
            for a in range(11)
            for b in range(11)
            if fisher(a, 10, b, 10) <= 0.05
        )
        assert power_unpaired(fisher, 10, rates) == pytest.approx(by_hand)
    assert power_unpaired(fisher, 10, (0.3, 0.9)) == pytest.approx(0.67, abs=0.005)
    assert power_unpaired(fisher, 10, (0.5, 0.5)) < 0.05


def test_power_of_mcnemars_test_equals_a_simulation():
    draw = np.random.default_rng(0)
    for rates in ((0.3, 0.9), (0.5, 0.9)):
        first = draw.random((20_000, 10)) < rates[0]
        second = draw.random((20_000, 10)) < rates[1]
        only = (first & ~second).sum(1), (~first & second).sum(1)
        p_values = {key: mcnemar(*key) for key in itertools.product(range(11), repeat=2)}
        share = np.mean([p_values[pair] <= 0.05 for pair in zip(*only, strict=True)])
        assert power_paired(10, rates) == pytest.approx(share, abs=0.012)
    assert power_paired(10, (1.0, 1.0)) == 0.0
    assert power_paired(6, (0.0, 1.0)) == 1.0
    assert power_paired(5, (0.0, 1.0)) == 0.0


def test_kappa_is_agreement_beyond_chance():
    assert kappa([True, False, True], [True, False, True]) == 1.0
    # 20 both yes, 5 and 10 one of them, 15 both no: the textbook's 0.4.
    first = [True] * 25 + [False] * 25
    second = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    assert kappa(first, second) == pytest.approx(0.4)
    assert kappa([True, True], [True, True]) is None
    with pytest.raises(InputError, match="two labels"):
        kappa([True], [])
