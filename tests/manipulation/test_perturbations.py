import numpy as np
import pytest

from prism_motor.manipulation.environment import Observation
from prism_motor.manipulation.rollout import (
    PERTURBATIONS,
    Disturber,
    Perturbation,
    find_perturbation,
)


def seen(value=128, state=0.0):
    images = {"corner": np.full((32, 32, 3), value, dtype=np.uint8)}
    return Observation(np.full(500, state, np.float32), np.ones(3, np.float32), images)


def test_the_conditions_of_the_paper():
    assert PERTURBATIONS["none"] == Perturbation()
    assert PERTURBATIONS["delay"] == Perturbation(delay=1)
    assert PERTURBATIONS["proprioception"] == Perturbation(state_noise=0.01)
    assert PERTURBATIONS["image"] == Perturbation(image_noise=0.05)
    assert PERTURBATIONS["combined"] == Perturbation(1, 0.01, 0.03)
    with pytest.raises(ValueError, match=r"Unknown condition 'delays'.*Did you mean 'delay'"):
        find_perturbation("delays")


def test_nothing_changes_without_a_perturbation():
    disturber = Disturber(Perturbation(), 1)
    observation = seen()
    result = disturber.observe(observation)
    np.testing.assert_array_equal(result.state, observation.state)
    assert result.images["corner"] is observation.images["corner"]
    np.testing.assert_array_equal(disturber.execute(np.ones(4)), np.ones(4))


def test_a_delay_shifts_actions_and_begins_with_zeros():
    disturber = Disturber(Perturbation(delay=2), 1)
    executed = [disturber.execute(np.full(2, value))[0] for value in (1.0, 2.0, 3.0, 4.0)]
    assert executed == [0, 0, 1, 2]


def test_noise_has_the_asked_deviation_and_leaves_objects_alone():
    disturber = Disturber(Perturbation(state_noise=0.01, image_noise=0.05), 3)
    results = [disturber.observe(seen()) for _ in range(40)]
    states = np.stack([result.state for result in results])
    assert states.std() == pytest.approx(0.01, rel=0.03)
    assert states.mean() == pytest.approx(0, abs=3e-4)
    images = np.stack([result.images["corner"] for result in results]) / 255
    assert images.std() == pytest.approx(0.05, rel=0.03)
    assert images.mean() == pytest.approx(128 / 255, abs=1e-3)
    assert states.dtype == np.float32
    np.testing.assert_array_equal(results[0].objects, np.ones(3))


def test_noisy_images_stay_images():
    disturber = Disturber(Perturbation(image_noise=0.5), 3)
    for value in (0, 255):
        image = disturber.observe(seen(value)).images["corner"]
        assert image.dtype == np.uint8
        assert (image == value).mean() > 0.4  # clipped, not wrapped around


def test_the_seed_decides_and_images_do_not_change_the_noise_of_the_state():
    both = Perturbation(state_noise=0.01, image_noise=0.05)
    one = Disturber(both, 5)
    other = Disturber(both, 5)
    blind = Observation(seen().state, seen().objects)
    for _ in range(3):
        first, second = one.observe(seen()), other.observe(blind)
    np.testing.assert_array_equal(first.state, second.state)
    assert (
        Disturber(both, 6).observe(seen()).state != Disturber(both, 5).observe(seen()).state
    ).any()
