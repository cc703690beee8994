import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prism_motor.analysis.probe.fit import (
    cross_predict,
    folds_at_random,
    folds_by_unit,
    gain,
    mean_squared_error,
    moments,
    pearson,
    score,
)
from prism_motor.analysis.probe.walking import WALKING


def folds_by_robot(robot, seed):
    return folds_by_unit(robot, seed, WALKING)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    robot = np.repeat(np.arange(12), 40)
    x = rng.normal(size=(480, 7)) * [1, 10, 0.1, 1, 1, 3, 1] + 5
    y = x[:, :2] @ rng.normal(size=(2, 3)) + rng.normal(size=(480, 3)) + 2
    return x.astype(np.float32), y, robot


def test_equals_scikit_learn_fold_by_fold(data):
    x, y, robot = data
    fold = folds_by_robot(robot, seed=1)
    found = cross_predict(x, y, fold)
    for part in range(5):
        train, test = fold != part, fold == part
        xs, ys = StandardScaler().fit(x[train]), StandardScaler().fit(y[train])
        probe = LinearRegression().fit(xs.transform(x[train]), ys.transform(y[train]))
        np.testing.assert_allclose(found.truth[test], ys.transform(y[test]), atol=1e-9)
        expected = probe.predict(xs.transform(x[test]))
        np.testing.assert_allclose(found.value[test], expected, atol=1e-5)
    assert found.rank == 7


def test_copied_and_constant_features_change_nothing(data):
    x, y, robot = data
    fold = folds_by_robot(robot, seed=1)
    plain = cross_predict(x, y, fold)
    more = np.concatenate([x, 2 * x[:, :3], np.full((480, 2), 7.0, np.float32)], axis=1)
    found = cross_predict(more, y, fold)
    np.testing.assert_allclose(found.value, plain.value, atol=1e-6)
    assert found.rank == 7


def test_principal_directions_are_those_of_the_training_part(data):
    x, y, robot = data
    fold = folds_by_robot(robot, seed=1)
    found = cross_predict(x, y, fold, directions=3)
    assert found.rank == 3
    train, test = fold != 0, fold == 0
    model = make_pipeline(StandardScaler(), PCA(3), LinearRegression())
    ys = StandardScaler().fit(y[train])
    expected = model.fit(x[train], ys.transform(y[train])).predict(x[test])
    np.testing.assert_allclose(found.value[test], expected, atol=1e-5)


def test_no_robot_is_on_both_sides(data):
    _, _, robot = data
    fold = folds_by_robot(robot, seed=3)
    assert all(len(np.unique(fold[robot == r])) == 1 for r in range(12))
    assert len(np.unique(fold)) == 5
    np.testing.assert_array_equal(fold, folds_by_robot(robot, seed=3))
    mixed = folds_at_random(480, seed=3)
    assert all(len(np.unique(mixed[robot == r])) > 1 for r in range(12))


def test_too_few_robots_are_refused():
    message = "4 robots have upright windows, at least 5 are needed.*a policy that walks"
    with pytest.raises(ValueError, match=message):
        folds_by_robot(np.array([0, 1, 2, 3, 3]), seed=0)


def test_scores_are_those_of_the_textbook(data):
    x, y, robot = data
    found = cross_predict(x, y, folds_by_robot(robot, seed=1))
    sums = moments(found, robot)
    for i in range(3):
        mse = np.mean((found.truth[:, i] - found.value[:, i]) ** 2)
        assert mean_squared_error(sums.sum(0))[i] == pytest.approx(mse)
        r = pearsonr(found.truth[:, i], found.value[:, i]).statistic
        assert pearson(sums.sum(0))[i] == pytest.approx(r)
    one = score(sums[:, 0], "mse")
    assert one.low < one.value < one.high
    assert one == score(sums[:, 0], "mse")


def test_a_constant_prediction_has_no_correlation():
    sums = np.array([10.0, 0, 5, 10, 2.5, 0, 12.5])
    assert pearson(sums) == 0


def test_gain_is_the_relative_change_on_the_same_robots(data):
    x, y, robot = data
    fold = folds_by_robot(robot, seed=1)
    good, poor = (moments(cross_predict(x[:, :n], y, fold), robot) for n in (7, 1))
    change = gain(good[:, 0], poor[:, 0], "mse")
    before, after = score(poor[:, 0], "mse").value, score(good[:, 0], "mse").value
    assert change.value == pytest.approx((after - before) / before)
    assert change.high < 0
    same = gain(good[:, 0], good[:, 0], "r")
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_a_random_split_of_windows_flatters():
    # Slow signals that have nothing to do with each other: there is nothing to predict.
    rng = np.random.default_rng(0)
    robot = np.repeat(np.arange(20), 100)
    walks = rng.normal(size=(20, 100, 31)).cumsum(1).reshape(2000, 31)
    x, y = walks[:, :30], walks[:, 30:]
    honest = moments(cross_predict(x, y, folds_by_robot(robot, 0)), robot)
    leaky = moments(cross_predict(x, y, folds_at_random(2000, 0)), robot)
    assert score(honest[:, 0], "mse").value > 1.0
    assert score(leaky[:, 0], "mse").value < 0.9
    assert gain(leaky[:, 0], honest[:, 0], "mse").high < 0
