"""A tiny study that the tests share."""

from dataclasses import replace

import numpy as np
import pytest

from prism_motor.studies.physics.config import QUICK
from prism_motor.studies.physics.dataset import make_dataset
from prism_motor.studies.physics.robot import load_arm

TINY = replace(
    QUICK,
    arms=("mlp-matched", "prism"),
    train_episodes=3,
    validation_episodes=2,
    test_episodes=2,
    updates=20,
    curve_points=2,
    workers=1,
)


@pytest.fixture(scope="session")
def model():
    return load_arm()


@pytest.fixture(scope="session")
def tiny_dataset():
    return make_dataset(TINY)


@pytest.fixture
def states():
    """Random states off the table: positions, velocities, torques, 20 x 4 each."""
    generator = np.random.default_rng(3)
    model = load_arm()
    low, high = model.jnt_range.T
    q = generator.uniform(low, high, (20, 4))
    return q, generator.normal(0, 3, (20, 4)), generator.normal(0, 5, (20, 4))
