from dataclasses import replace

import numpy as np
import pytest

from prism_motor.manipulation.compliance import (
    COMPLIANCE,
    ComplianceConfig,
    ComplianceCorrector,
    find_compliance,
)
from tests.manipulation.compliance.arm import PRESSING, Arm

SENSORLESS, ORACLE = COMPLIANCE["mcc-sensorless"], COMPLIANCE["mcc-oracle"]
ACTION = np.array([0.2, -0.1, 0.3, 0.4, 0.5, -0.6, 1.0])


@pytest.fixture(scope="module")
def pressing():
    arm = Arm()
    arm.hold(PRESSING)
    return arm.physics()


def feel(physics, force):
    """Let the hand be touched with a force."""
    return replace(physics, contact_force=np.asarray(force, float))


def test_the_settings_are_those_of_the_paper():
    assert ComplianceConfig("actuators", 0.015, 2, 0.90, 0.15, 1e-4, 0.05) == SENSORLESS
    assert ComplianceConfig("contacts", 0.015, 0, 0.90, 0.0, 1e-4, 0.05) == ORACLE


@pytest.mark.parametrize("config", [SENSORLESS, ORACLE])
def test_a_hand_that_presses_down_is_raised(config, pressing):
    corrector = ComplianceCorrector(config)
    executed = [corrector.correct(ACTION, pressing) for _ in range(30)]
    assert executed[-1][2] > ACTION[2] + 0.04
    assert np.abs(executed[-1] - ACTION).max() <= config.clip + 1e-12
    assert ACTION[2] == 0.3  # the policy's action is not touched


@pytest.mark.parametrize("config", [SENSORLESS, ORACLE])
def test_only_the_translation_changes(config, pressing):
    corrector = ComplianceCorrector(config)
    for _ in range(10):
        executed = corrector.correct(ACTION, pressing)
        np.testing.assert_array_equal(executed[3:], ACTION[3:])


def test_average_delay_and_clip_are_those_of_the_formula(pressing):
    config = replace(ORACLE, delay=3, clip=0.05, gain=0.01)
    corrector = ComplianceCorrector(config)
    felt = np.random.default_rng(0).normal(0, 6, size=(40, 3))
    averages = [np.zeros(3)]
    for f in felt:
        averages.append(0.9 * averages[-1] - 0.1 * f)  # exerted is the opposite of felt
    for t, f in enumerate(felt):
        found = corrector.correct(ACTION, feel(pressing, f))
        late = averages[t + 1 - 3] if t >= 3 else np.zeros(3)
        expected = ACTION[:3] - np.clip(0.01 * late, -0.05, 0.05)
        np.testing.assert_allclose(found[:3], expected)
        np.testing.assert_allclose(corrector.force, late)


def test_noise_follows_from_the_seed_of_the_episode(pressing):
    corrector = ComplianceCorrector(SENSORLESS)

    def run(seed):
        corrector.reset(seed)
        return np.stack([corrector.correct(ACTION, pressing) for _ in range(8)])

    one, two, again = run(1), run(2), run(1)
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - two).max() > 0
    np.testing.assert_array_equal(one[:2], np.stack([ACTION] * 2))  # the force is two steps late


def test_noise_has_the_stated_size_before_the_average(pressing):
    corrector = ComplianceCorrector(replace(ORACLE, noise=0.15, smoothing=0.0))
    forces = []
    for _ in range(2000):
        corrector.correct(ACTION, feel(pressing, np.zeros(3)))
        forces.append(corrector.force)
    assert np.std(forces) == pytest.approx(0.15, rel=0.05)


def test_the_result_stays_an_action(pressing):
    corrector = ComplianceCorrector(ORACLE)
    beyond = np.array([1.7, -1.7, 1.0, 0, 0, 0, 0])
    for _ in range(50):
        executed = corrector.correct(beyond, feel(pressing, [-50.0, 50.0, 50.0]))
    np.testing.assert_allclose(executed[:3], [0.95, -0.95, 1.0])


def test_single_precision_stays_single(pressing):
    executed = ComplianceCorrector(ORACLE).correct(ACTION.astype(np.float32), pressing)
    assert executed.dtype == np.float32


def test_without_joints_only_the_oracle_works(pressing):
    mocap = replace(pressing, jacobian=np.zeros((6, 0)), joint_torques=np.zeros(0))
    mocap = replace(mocap, bias_torques=np.zeros(0))
    ComplianceCorrector(ORACLE).correct(ACTION, mocap)
    with pytest.raises(ValueError, match="Take mcc-oracle"):
        ComplianceCorrector(SENSORLESS).correct(ACTION, mocap)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "camera"}, "compliance source"),
        ({"delay": -1}, "delay must not be negative"),
        ({"smoothing": 1.0}, "smoothing must be from 0 to below 1"),
        ({"gain": -0.1}, "gain must not be negative"),
        ({"damping": 0.0}, "damping must be positive"),
    ],
)
def test_settings_without_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ComplianceConfig(**options)


def test_baselines_are_found_by_name():
    assert find_compliance("mcc-oracle") == ORACLE
    with pytest.raises(ValueError, match="mcc-sensorless"):
        find_compliance("mcc-sensorles")
