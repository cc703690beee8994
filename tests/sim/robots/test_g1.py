"""The figures of the G1 that the task depends on."""

import mujoco
import numpy as np
import pytest

from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model


@pytest.fixture(scope="module")
def standing():
    robot = make_robot("g1")
    model = build_model(robot, timestep=0.001)
    data = mujoco.MjData(model)
    pose(robot, model, data, robot.default_pose)
    return robot, model, data


def pose(robot, model, data, angles, height=0.7842):
    mujoco.mj_resetData(model, data)
    data.qpos[:3] = 0, 0, height
    data.qpos[7:] = angles
    mujoco.mj_forward(model, data)


def sole_heights(model, data):
    soles = [i for i in range(model.ngeom) if "_sole_" in model.geom(i).name]
    return data.geom_xpos[soles, 2] - model.geom_size[soles, 0]


def test_joint_order_gains_and_limits(standing):
    robot, model, _ = standing
    legs = ["hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll"]
    expected = [f"{side}_{name}" for side in ("left", "right") for name in legs]
    assert [joint.name for joint in robot.joints] == expected
    assert [model.actuator(i).name for i in range(model.nu)] == expected
    assert [model.joint(i + 1).name for i in range(12)] == expected
    np.testing.assert_allclose(model.actuator_gainprm[:6, 0], [100, 100, 100, 150, 40, 40])
    np.testing.assert_allclose(-model.actuator_biasprm[:6, 2], [2, 2, 2, 4, 2, 2])
    limits = [74.8, 118.15, 74.8, 118.15, 42.5, 42.5]
    np.testing.assert_allclose(model.actuator_forcerange[:6, 1], limits)
    np.testing.assert_allclose(model.actuator_forcerange[6:, 0], [-v for v in limits])
    assert model.joint("left_hip_roll").range.tolist() == [-0.5236, 2.9671]
    assert model.joint("right_hip_roll").range.tolist() == [-2.9671, 0.5236]
    assert model.joint("right_knee").range.tolist() == [-0.087267, 2.8798]
    np.testing.assert_allclose(robot.default_pose, [-0.1, 0, 0, 0.3, -0.2, 0] * 2)


def test_masses(standing):
    _, model, _ = standing
    assert model.body_mass.sum() == pytest.approx(32.107, abs=1e-3)
    assert model.body("pelvis").mass[0] == pytest.approx(17.735, abs=1e-3)
    legs = {"hip_pitch": 1.35, "hip_roll": 1.52, "hip_yaw": 1.702, "knee": 1.932}
    legs |= {"ankle_pitch": 0.074, "ankle_roll": 0.608}
    for name, mass in legs.items():
        assert model.body(f"left_{name}").mass[0] == model.body(f"right_{name}").mass[0] == mass


def test_standing_geometry(standing):
    robot, model, data = standing
    np.testing.assert_allclose(sole_heights(model, data), 0, atol=2e-4)
    left, right = (data.body(name).xpos for name in robot.feet)
    assert left[1] - right[1] == pytest.approx(0.237, abs=1e-3)
    assert left[2] == pytest.approx(robot.foot_offset, abs=2e-4)
    left, right = (data.body(name).xpos for name in robot.knees)
    assert left[1] - right[1] == pytest.approx(0.237, abs=1e-3)


@pytest.mark.parametrize(
    ("pitch", "knee", "ankle", "height"), [(0, 0, 0, 0.7919), (-0.312, 0.669, -0.363, 0.757)]
)
def test_height_of_other_poses(standing, pitch, knee, ankle, height):
    robot, model, data = standing
    pose(robot, model, data, [pitch, 0, 0, knee, ankle, 0] * 2, height=height)
    assert sole_heights(model, data).min() == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("amplitude", "lift"), [(0.17, 0.025), (0.24, 0.04), (0.28, 0.05), (0.316, 0.06), (0.38, 0.08)]
)
def test_reference_swing_lifts_the_foot(standing, amplitude, lift):
    robot, model, data = standing
    angles = robot.default_pose.copy()
    angles[[0, 3, 4]] += amplitude * np.array([-1, 2, -1])
    pose(robot, model, data, angles)
    assert data.body("left_ankle_roll").xpos[2] - 0.035 == pytest.approx(lift, abs=3e-3)
    assert data.body("right_ankle_roll").xpos[2] - 0.035 == pytest.approx(0, abs=2e-4)


def test_joint_signs(standing):
    robot, model, data = standing

    def foot_after(joint, angle):
        angles = robot.default_pose.copy()
        angles[robot.joint_names.index(joint)] += angle
        pose(robot, model, data, angles)
        return data.body("left_ankle_roll").xpos.copy()

    rest = foot_after("left_knee", 0.0)
    assert foot_after("left_hip_pitch", -0.3)[0] > rest[0] + 0.1  # thigh forward
    assert foot_after("left_knee", 0.3)[0] < rest[0] - 0.05  # knee bends backward
    foot_after("left_ankle_pitch", -0.3)
    toe, heel = (data.geom(f"left_sole_{i}").xpos[2] for i in (2, 0))
    assert toe > heel + 0.02  # toes up


def test_the_robot_is_its_own_mirror_image(standing):
    robot, model, data = standing
    rng = np.random.default_rng(0)
    angles = robot.default_pose + rng.uniform(-0.3, 0.3, 12)
    mirrored = angles[list(robot.mirror)] * robot.mirror_sign

    def bodies(q):
        pose(robot, model, data, q)
        return {model.body(i).name: data.xipos[i].copy() for i in range(model.nbody)}

    one, other = bodies(angles), bodies(mirrored)
    for name, position in one.items():
        twin = name.replace("left", "RIGHT").replace("right", "left").replace("RIGHT", "right")
        if "left" in name or "right" in name:
            np.testing.assert_allclose(position * [1, -1, 1], other[twin], atol=1e-9)


def test_no_mesh_files_and_no_self_collision(standing):
    _, model, data = standing
    assert model.nmesh == 0
    crossed = standing[0].default_pose.copy()
    crossed[[1, 7]] = -0.3, 0.3
    pose(standing[0], model, data, crossed, height=1.5)
    assert data.ncon == 0


def test_a_lying_robot_touches_the_ground_with_its_base():
    robot = make_robot("g1")
    model = build_model(robot, timestep=0.002)
    data = mujoco.MjData(model)
    data.qpos[:7] = 0, 0, 0.3, 0.7071, 0, 0.7071, 0
    data.ctrl[:] = robot.default_pose
    for _ in range(1000):
        mujoco.mj_step(model, data)
    assert np.linalg.norm(data.sensor("pelvis_force").data) > 1.0


def test_unknown_robot_is_refused():
    with pytest.raises(ValueError, match=r"robot 'g2'.*g1"):
        make_robot("g2")
