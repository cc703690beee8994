"""Bootstrap and interquartile mean against scipy, closed forms and rliable."""

import numpy as np
import pytest
from scipy import stats

from prism_motor.statistics import bootstrap, iqm, iqm_estimate

# Five trainings (rows) of three tasks, for two methods.
METHOD_A = np.array(
    [
        [0.62, 1.10, 0.31],
        [0.71, 0.95, 0.44],
        [0.55, 1.22, 0.29],
        [0.80, 1.05, 0.52],
        [0.66, 0.99, 0.35],
    ]
)
METHOD_B = np.array(
    [
        [0.58, 1.00, 0.30],
        [0.60, 0.97, 0.47],
        [0.57, 1.02, 0.25],
        [0.69, 1.08, 0.40],
        [0.61, 0.90, 0.33],
    ]
)


@pytest.mark.parametrize(
    ("scores", "centre", "low", "high"),
    [
        (METHOD_A, 0.6933333333, 0.6422222222, 0.7422222222),
        (METHOD_B, 0.6433333333, 0.6088888889, 0.6733333333),
    ],
)
def test_iqm_agrees_with_rliable(scores, centre, low, high):
    # rliable 1.2.0 with numpy 2.4.6, arch 7.2.0, pandas 2.3.3: get_interval_estimates of
    # aggregate_iqm with 200 000 stratified bootstrap samples.
    found = iqm_estimate(scores.T.tolist(), resamples=20_000)
    assert found.centre == pytest.approx(centre, abs=1e-9)
    assert found.interval == pytest.approx((low, high), abs=2e-3)  # two random numbers' worth
    assert found.count == 15
    assert found.sd is None  # tasks differ for other reasons than seeds


def test_iqm_drops_whole_quarters():
    assert iqm([1.0, 2.0, 3.0, 100.0]) == pytest.approx(2.5)
    assert iqm([-50.0, 1.0, 2.0, 3.0, 100.0]) == pytest.approx(2.0)
    assert iqm([1.0, 2.0, 9.0]) == pytest.approx(4.0)  # too few: the mean


def test_interval_agrees_with_scipy_on_one_stratum():
    values = np.random.default_rng(4).exponential(size=40)
    ours = bootstrap([values], lambda batch: batch.mean(axis=1), resamples=20_000)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=1
    ).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.03)


def test_resampling_stays_within_strata():
    # Between strata there is a large gap and within them a small one.
    found = bootstrap([[0.0, 0.1], [10.0, 10.1]], lambda batch: batch.mean(axis=1))
    assert found == pytest.approx((5.0, 5.1), abs=1e-9)


def test_samples_that_all_agree_are_no_certainty():
    assert iqm_estimate([[1.0] * 5, [1.0] * 5]).interval is None
    assert iqm_estimate([[0.1 + 0.2, 0.3, 0.3]]).interval is None


def test_entries_may_hold_sums_of_an_episode():
    # Pearson r from per-episode sums (n, x, y, xx, yy, xy) equals r over all steps.
    generator = np.random.default_rng(0)
    steps = [generator.normal(size=(n, 2)) for n in (5, 9, 7)]
    steps = [np.stack([s[:, 0], 0.5 * s[:, 0] + s[:, 1]], axis=1) for s in steps]
    sums = np.array([[len(s), *s.sum(0), *(s**2).sum(0), (s[:, 0] * s[:, 1]).sum()] for s in steps])

    def r(batch):
        n, x, y, xx, yy, xy = np.moveaxis(batch.sum(axis=1), -1, 0)
        return (n * xy - x * y) / np.sqrt((n * xx - x**2) * (n * yy - y**2))

    everything = np.concatenate(steps)
    whole = np.corrcoef(everything.T)[0, 1]
    assert r(sums[None])[0] == pytest.approx(whole)
    found = bootstrap([sums], r)
    assert found is not None
    assert found.low < whole < found.high


def test_the_same_seed_gives_the_same_interval_whatever_the_batch(monkeypatch):
    def mean(batch):
        return batch.mean(axis=1)

    values = np.random.default_rng(0).normal(size=30)
    first = bootstrap([values], mean, resamples=500)
    assert bootstrap([values], mean, resamples=500) == first
    assert bootstrap([values], mean, resamples=500, seed=1) != first
    monkeypatch.setattr("prism_motor.statistics.resampling._BATCH_VALUES", 300)
    assert bootstrap([values], mean, resamples=500) == first


def test_one_run_a_stratum_has_no_interval():
    found = iqm_estimate([[1.0], [2.0]])
    assert (found.centre, found.interval, found.count) == (1.5, None, 2)
    assert iqm_estimate([[1.0, 2.0]]).sd == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize("strata", [[], [[1.0], []]])
def test_empty_strata_are_refused(strata):
    with pytest.raises(ValueError, match="at least one entry"):
        bootstrap(strata, lambda batch: batch.mean(axis=1))
