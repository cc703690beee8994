"""When an arm may be called better: one rule for all tables."""

from dataclasses import dataclass

import pytest
from scipy import stats

from prism_motor.statistics import Measure, make_claim, with_holm, write_p

ERROR = Measure("error", "error", "mm", 1, False, 1000.0)
RATE = Measure("rate", "rate", "%", 1, True, 100.0)

OURS = {1: 1.0, 2: 1.1, 3: 0.9, 4: 1.05}
THEIRS = {1: 2.0, 2: 2.2, 3: 1.9, 4: 2.0}


@dataclass
class Row:
    error: float | None


def test_a_measure_reads_mappings_and_records_and_writes_numbers():
    assert ERROR.value({"error": 0.002}) == pytest.approx(2.0)
    assert ERROR.value(Row(0.003)) == pytest.approx(3.0)
    assert ERROR.value(Row(None)) is None
    assert ERROR.heading == "error, mm\u00a0↓"
    assert Measure("x", "x").heading == "x"
    assert (ERROR.write(-1.25), ERROR.write(2.0, signed=True)) == ("−1.2", "+2.0")


@pytest.mark.parametrize(("measure", "outcome"), [(ERROR, "better"), (RATE, "worse")])
def test_the_direction_decides_what_a_difference_means(measure, outcome):
    (claim,) = with_holm([make_claim(("a", OURS), ("b", THEIRS), "plain", measure)])
    assert claim.outcome == outcome
    assert claim.adjusted == pytest.approx(
        stats.ttest_rel(list(OURS.values()), list(THEIRS.values())).pvalue
    )


def test_many_claims_need_more():
    nearly = {1: 1.9, 2: 2.05, 3: 1.72, 4: 1.93}
    claim = make_claim(("a", nearly), ("b", THEIRS), "plain", ERROR)
    assert with_holm([claim])[0].outcome == "better"
    assert {one.outcome for one in with_holm([claim] * 20)} == {"open"}


def test_what_cannot_be_tested_is_no_claim():
    single = make_claim(("a", {1: 1.0}), ("b", {1: 2.0}), "plain", ERROR)
    constant = make_claim(("a", {1: 1.0, 2: 2.0}), ("b", {1: 2.0, 2: 3.0}), "plain", ERROR)
    apart = make_claim(("a", {1: 1.0}), ("b", {2: 2.0}), "plain", ERROR)
    assert {claim.outcome for claim in with_holm([single, constant, apart])} == {"untested"}
    assert apart.comparison is None


def test_p_values_have_two_digits():
    assert [write_p(p) for p in (0.0004, 0.0123, 1.0)] == ["< 0.001", "0.012", "1"]
