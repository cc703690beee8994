"""Batched kinematics against MuJoCo, one state at a time and index by index."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from prism_motor.sim.kinematics import Kinematics, rotation_matrix
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model

STATES = 7


@pytest.fixture(scope="module", params=["g1", "g1-29", "quadruped"])
def case(request):
    robot = make_robot(request.param)
    joints = len(robot.joints)
    rng = np.random.default_rng(3)
    qpos = rng.normal(size=(STATES, 7 + joints))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    qvel = 3 * rng.normal(size=(STATES, 6 + joints))
    return robot, build_model(robot, timestep=0.005), Kinematics(robot), qpos, qvel


def forward(model, qpos, qvel):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model, data)
    return data


def test_names_are_the_models_bodies(case):
    _, model, kinematics, _, _ = case
    assert kinematics.names == tuple(model.body(i).name for i in range(1, model.nbody))
    np.testing.assert_array_equal(kinematics.limits, model.jnt_range[1:])
    for name, depth in kinematics.depth.items():
        body, above = model.body(name).id, 0
        while body != 1:
            body, above = model.body_parentid[body], above + 1
        assert depth == above


def test_every_body_of_every_state(case):
    _, model, kinematics, qpos, qvel = case
    bodies = kinematics.bodies(qpos, qvel)
    count = len(kinematics.names)
    assert bodies.position.shape == bodies.velocity.shape == (3, count, STATES)
    assert bodies.rotation.shape == (3, 3, count, STATES)
    motion = np.zeros(6)
    for n in range(STATES):
        data = forward(model, qpos[n], qvel[n])
        for b, name in enumerate(kinematics.names):
            body = data.body(name)
            np.testing.assert_allclose(bodies.position[:, b, n], body.xpos, atol=1e-12)
            np.testing.assert_allclose(
                bodies.rotation[:, :, b, n], body.xmat.reshape(3, 3), atol=1e-12
            )
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, b + 1, motion, 0)
            np.testing.assert_allclose(bodies.velocity[:, b, n], motion[3:], atol=1e-11)
            np.testing.assert_allclose(bodies.angular_velocity[:, b, n], motion[:3], atol=1e-11)


def test_poses_are_those_of_bodies(case):
    _, _, kinematics, qpos, qvel = case
    position, rotation = kinematics.poses(qpos)
    bodies = kinematics.bodies(qpos, qvel)
    np.testing.assert_array_equal(position, bodies.position)
    np.testing.assert_array_equal(rotation, bodies.rotation)


def test_center_of_mass_and_jacobian(case):
    robot, model, kinematics, qpos, qvel = case
    center = kinematics.center_of_mass(qpos)
    foot = robot.feet[1]
    jacobian = kinematics.jacobian(qpos, foot)
    linear, angular = np.zeros((2, 3, model.nv))
    for n in range(STATES):
        data = forward(model, qpos[n], qvel[n])
        np.testing.assert_allclose(center[:, n], data.subtree_com[1], atol=1e-12)
        mujoco.mj_jacBody(model, data, linear, angular, model.body(foot).id)
        expected = np.concatenate([linear, angular])[:, 6:]
        np.testing.assert_allclose(jacobian[..., n], expected, atol=1e-12)


def test_rotation_matrix_of_a_known_quaternion():
    quarter = np.array([np.sqrt(0.5), 0, 0, np.sqrt(0.5)])  # about z
    np.testing.assert_allclose(
        rotation_matrix(quarter), [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15
    )


def test_a_robot_with_other_joints_is_refused():
    robot = make_robot("quadruped")
    text = robot.xml.replace(
        '<joint name="front_left_knee"', '<joint pos="0 0 1" name="front_left_knee"'
    )
    with pytest.raises(ValueError, match="one hinge per body"):
        Kinematics(replace(robot, xml=text))
