"""Simulated data: episodes, splits, extrapolation."""

from dataclasses import replace

import numpy as np
import pytest

from prism_motor.studies.physics.config import PhysicsConfig
from prism_motor.studies.physics.dataset import make_dataset
from prism_motor.studies.physics.robot import (
    TORQUE_LIMIT,
    measure,
    signal_names,
    target_columns,
)

from .conftest import TINY


def test_sizes_and_finite_values(tiny_dataset):
    rows = round(TINY.episode_seconds / TINY.sample_seconds)
    assert tiny_dataset.rows_per_episode == rows
    assert tiny_dataset.train.inputs.shape == (3 * rows, len(signal_names()))
    assert tiny_dataset.test.targets.shape == (2 * rows, 8)
    for split in (tiny_dataset.train, tiny_dataset.validation, tiny_dataset.extrapolation):
        assert np.isfinite(split.inputs).all()
        assert np.isfinite(split.targets).all()


def test_the_hand_touches_the_table_now_and_then(tiny_dataset):
    share = (tiny_dataset.train.targets[:, target_columns()["contact_power"]] > 0).mean()
    assert 0.01 < share < 0.6


def test_data_without_contact_are_refused():
    with pytest.raises(ValueError, match="have a single value of contact_power"):
        make_dataset(replace(TINY, episode_seconds=0.1))


def test_torques_respect_the_limits_and_reach_for_them(tiny_dataset):
    torque = np.abs(tiny_dataset.train.inputs[:, 8:])
    assert (torque <= TORQUE_LIMIT).all()
    assert (torque.max(0) > 0.4 * TORQUE_LIMIT).all()


def test_same_seed_same_data_other_seed_other_data(tiny_dataset):
    again = make_dataset(TINY)
    np.testing.assert_array_equal(again.train.inputs, tiny_dataset.train.inputs)
    np.testing.assert_array_equal(again.test.targets, tiny_dataset.test.targets)
    other = make_dataset(replace(TINY, data_seed=8))
    assert not np.array_equal(other.train.inputs, tiny_dataset.train.inputs)


def test_no_state_is_in_two_splits(tiny_dataset):
    splits = (tiny_dataset.train, tiny_dataset.validation, tiny_dataset.test)
    rows = np.concatenate([split.inputs for split in splits])
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_extrapolation_is_the_test_set_faster_with_targets_computed_anew(tiny_dataset, model):
    test, far = tiny_dataset.test, tiny_dataset.extrapolation
    factor = TINY.extrapolation
    np.testing.assert_array_equal(far.inputs[:, :4], test.inputs[:, :4])
    np.testing.assert_allclose(far.inputs[:, 4:], factor * test.inputs[:, 4:])
    # Powers and energy are quadratic in (dq, tau), whatever the pose.
    np.testing.assert_allclose(far.targets[:, :3], factor**2 * test.targets[:, :3], rtol=1e-9)
    q, dq, tau = np.split(far.inputs, 3, axis=1)
    np.testing.assert_array_equal(far.targets, measure(model, q, dq, tau))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 1}, "seeds must be from 2 to 1000, got 1"),
        ({"updates": 0}, "updates must be .* got 0"),
        ({"learning_rates": ()}, "learning_rates must have 1 to 100 values, got 0"),
        ({"learning_rates": (0.0,)}, r"learning_rates\[0\] must be above 0"),
        ({"sample_seconds": 9.0}, "sample_seconds must be at most"),
        ({"extrapolation": 0.0}, "extrapolation must be above 0"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        PhysicsConfig(**change)
