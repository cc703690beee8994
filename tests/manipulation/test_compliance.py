import json
from dataclasses import asdict, replace

import mujoco
import numpy as np
import pytest

from prism_motor.manipulation.compliance import (
    COMPLIANCE,
    ComplianceConfig,
    ComplianceCorrector,
    ComplianceGrid,
    ComplianceTrial,
    choose_trial,
    compliance_label,
    contact_force,
    estimated_force,
    exerted_force,
    find_compliance,
)
from tests.manipulation.arm import PRESSING, REST, Arm


def test_a_force_is_recovered_from_its_torques():
    rng = np.random.default_rng(0)
    jacobian, force = rng.normal(size=(3, 7)), np.array([3.0, -20.0, 8.0])
    found = exerted_force(jacobian, jacobian.T @ force)
    np.testing.assert_allclose(found, force, rtol=1e-3)


def test_damping_shrinks_what_the_arm_can_hardly_feel():
    # Along an axis with singular value s, a force is read s^2 / (s^2 + damping) of its size.
    jacobian = np.diag([1.0, 0.01, 0.0])
    found = exerted_force(jacobian, jacobian.T @ np.full(3, 5.0), damping=1e-4)
    np.testing.assert_allclose(found, [5 / 1.0001, 2.5, 0.0])


@pytest.mark.parametrize("force", [(20.0, 0, 0), (0, -15.0, 0), (0, 0, -30.0), (8.0, 6.0, 12.0)])
def test_a_known_force_on_the_hand_is_found_while_the_arm_holds(force):
    arm = Arm()
    arm.push(force)
    arm.hold()
    physics = arm.physics()
    # Without friction, at rest, nothing but damping (1e-4) separates estimate and truth.
    error = estimated_force(physics) + force
    assert np.linalg.norm(error) < 0.01 * np.linalg.norm(force)
    # Gravity is several newtons at the hand: it would be read as force if it stayed in.
    heavy = exerted_force(physics.jacobian[:3], physics.joint_torques)
    assert np.linalg.norm(heavy + force) > 5.0


def test_a_free_arm_feels_nothing():
    arm = Arm()
    arm.hold()
    assert np.linalg.norm(estimated_force(arm.physics())) < 0.02


@pytest.mark.parametrize(("friction", "damping"), [(0.3, 0.0), (0.0, 1.0), (0.2, 0.5)])
def test_in_motion_the_error_is_inertia_drag_and_friction(friction, damping):
    arm = Arm(friction=friction, damping=damping)
    arm.hold(seconds=0.5)
    arm.push((0, 0, -20.0))
    arm.hold(REST + 0.5, seconds=0.1)
    physics, data = arm.physics(), arm.data
    inertia = np.zeros(arm.model.nv)
    mujoco.mj_mulM(arm.model, data, inertia, data.qacc)
    missing = inertia - data.qfrc_passive - data.qfrc_constraint
    expected = exerted_force(physics.jacobian[:3], missing)
    error = estimated_force(physics) - [0, 0, 20.0]
    assert np.linalg.norm(error) > 1.0
    np.testing.assert_allclose(error, expected, atol=0.005 * np.linalg.norm(error))


def test_pressing_on_a_table_both_sources_agree():
    arm = Arm()
    arm.hold(PRESSING)
    physics = arm.physics()
    truth = contact_force(physics)
    assert truth[2] < -5.0  # what the hand does to the table
    np.testing.assert_allclose(estimated_force(physics), truth, atol=0.05 * -truth[2])


def test_an_arm_without_joints_is_refused():
    with pytest.raises(ValueError, match="no actuated joints"):
        exerted_force(np.zeros((3, 0)), np.zeros(0))


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
    with pytest.raises(ValueError, match="Use mcc-oracle"):
        ComplianceCorrector(SENSORLESS).correct(ACTION, mocap)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "camera"}, "compliance source"),
        ({"delay": -1}, "delay must be from 0"),
        ({"smoothing": 1.0}, "smoothing must be at least 0 and below 1"),
        ({"gain": -0.1}, "gain must be from 0"),
        ({"damping": 0.0}, "damping must be above 0"),
    ],
)
def test_settings_without_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ComplianceConfig(**options)


def test_baselines_are_found_by_name():
    assert find_compliance("mcc-oracle") == ORACLE
    with pytest.raises(ValueError, match="mcc-sensorless"):
        find_compliance("mcc-sensorles")


def trial(successes, impulse, gain=0.01):
    return ComplianceTrial(replace(SENSORLESS, gain=gain), 10, successes, impulse)


def test_success_comes_first_then_the_impulse():
    assert choose_trial([trial(7, 1.0), trial(8, 90.0), trial(8, 20.0)]).impulse == 20.0
    assert choose_trial([trial(9, None), trial(9, 400.0)]).impulse == 400.0
    first, second = trial(5, 3.0, gain=0.1), trial(5, 3.0, gain=0.2)
    assert choose_trial([first, second]) is first
    with pytest.raises(ValueError, match="at least one"):
        choose_trial([])


def test_all_values_are_tried_with_all_others():
    found = ComplianceGrid(gain=(0.1, 0.2), smoothing=(0.5, 0.6, 0.7), clip=(0.05,)).candidates(
        SENSORLESS
    )
    assert len({(c.gain, c.smoothing) for c in found}) == len(found) == 6
    assert {(c.delay, c.noise, c.source) for c in found} == {(2, 0.15, "actuators")}
    assert SENSORLESS in ComplianceGrid().candidates(SENSORLESS)  # the paper's own choice


def test_what_was_chosen_can_be_used_as_a_baseline(tmp_path):
    file = tmp_path / "compliance.json"
    tuned = replace(SENSORLESS, gain=0.007)
    file.write_text(json.dumps({"chosen": asdict(tuned)}))
    assert find_compliance(str(file)) == tuned
    assert compliance_label(str(file)) == "mcc-sensorless-tuned"
    assert compliance_label("mcc-oracle") == "mcc-oracle"
    file.write_text(json.dumps({"chosen": {"gian": 1}}))
    with pytest.raises(ValueError, match="unknown key 'gian'"):
        find_compliance(str(file))
    with pytest.raises(ValueError, match="is not a file of prism compliance"):
        find_compliance(str(tmp_path / "none.json"))
