import mujoco
import numpy as np
import pytest

from prism_motor.manipulation.compliance import contact_force, estimated_force, exerted_force
from tests.manipulation.compliance.arm import PRESSING, REST, Arm


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
