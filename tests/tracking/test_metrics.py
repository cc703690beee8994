"""Measures of tracking against brute force and by hand."""

from itertools import permutations

import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor.tracking.metrics import (
    Upright,
    earth_movers_distance,
    foot_slip,
    joint_distances,
    root_drift,
    time_to_fall,
)


@pytest.mark.parametrize("frames", [1, 2, 5, 7])
def test_emd_is_the_best_of_all_assignments(frames):
    rng = np.random.default_rng(frames)
    a, b = rng.normal(size=(2, frames, 29))
    costs = np.array([[np.sqrt(((x - y) ** 2).sum()) for y in b] for x in a])
    best = min(
        costs[np.arange(frames), list(order)].mean() for order in permutations(range(frames))
    )
    assert earth_movers_distance(a, b) == pytest.approx(best)


def test_emd_does_not_see_the_order():
    a = np.random.default_rng(0).normal(size=(50, 29))
    assert earth_movers_distance(a, a[::-1]) == pytest.approx(0.0, abs=1e-12)
    assert earth_movers_distance(a, a + 0.1) == pytest.approx(0.1 * np.sqrt(29), rel=0.2)


def test_emd_agrees_with_optimal_transport():
    ot = pytest.importorskip("ot")
    a, b = np.random.default_rng(1).normal(size=(2, 60, 29))
    weights = np.full(60, 1 / 60)
    expected = ot.emd2(weights, weights, ot.dist(a, b, metric="euclidean"))
    assert earth_movers_distance(a, b) == pytest.approx(expected, rel=1e-9)


def test_sets_of_different_sizes_are_refused():
    with pytest.raises(InputError, match=r"\(3, 29\) and \(4, 29\)"):
        earth_movers_distance(np.zeros((3, 29)), np.zeros((4, 29)))


def test_joint_distances_by_hand():
    wanted = np.zeros((4, 2))
    found = np.array([[0.0, 0.0], [0.1, 0.0], [0.2, 0.0], [0.2, 3.0]])
    distances = joint_distances(found, wanted)
    assert distances["joint"] == pytest.approx(1000 * 3.5 / 8)
    assert distances["velocity"] == pytest.approx(1000 * (0.1 + 0.1 + 0 + 3.0) / 6)
    assert distances["acceleration"] == pytest.approx(1000 * (0 + 0.1 + 0 + 3.0) / 4)
    whole = [0.0, 0.1, 0.2, np.hypot(0.2, 3.0)]
    expected = np.mean([np.clip((4 - d) / 2, 0, 1) for d in whole])
    assert distances["proximity"] == pytest.approx(expected)
    assert expected < 1


def test_upright_and_the_time_to_fall():
    tilts = np.radians([0, 59, 61, 0, 0])
    gravity = np.stack([np.sin(tilts), np.zeros(5), -np.cos(tilts)], axis=1)
    upright = Upright()(np.array([0.8, 0.8, 0.8, 0.39, 0.4]), gravity)
    assert upright.tolist() == [True, True, False, False, True]
    assert time_to_fall(upright, 0.02) == pytest.approx(0.04)
    assert time_to_fall(np.ones(5, dtype=bool), 0.02) == pytest.approx(0.1)


def test_drift_is_horizontal_and_from_the_start():
    wanted = np.zeros((3, 3))
    found = np.array([[5.0, 5.0, 1.0], [8.0, 9.0, 0.0], [5.0, 5.0, 7.0]])
    assert root_drift(found, wanted) == pytest.approx(5.0 / 3)


def test_slip_counts_feet_in_contact():
    velocities = np.zeros((2, 2, 3))
    velocities[0, 0], velocities[0, 1], velocities[1, 0] = (0.3, 0.4, 9.0), (7, 7, 7), (0, 0.1, 0)
    contacts = np.array([[True, False], [True, False]])
    assert foot_slip(velocities, contacts) == pytest.approx(0.3)
    assert foot_slip(velocities, np.zeros((2, 2), dtype=bool)) == 0.0
