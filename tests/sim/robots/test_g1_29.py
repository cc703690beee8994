"""The 29-joint G1: facts, drives, contacts, and what it shares with the 12-joint one."""

import mujoco
import numpy as np
import pytest

from prism_motor.sim.engine import RolloutEngine
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model

LEG = ["hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll"]
ARM = ["shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow"]
ARM += ["wrist_roll", "wrist_pitch", "wrist_yaw"]
ORDER = [f"{side}_{name}" for side in ("left", "right") for name in LEG]
ORDER += ["waist_yaw", "waist_roll", "waist_pitch"]
ORDER += [f"{side}_{name}" for side in ("left", "right") for name in ARM]


@pytest.fixture(scope="module")
def body():
    robot = make_robot("g1-29")
    model = build_model(robot, timestep=0.005)
    return robot, model, mujoco.MjData(model)


def pose(body, angles, root=(0, 0, 0.7842, 1, 0, 0, 0)):
    _, model, data = body
    mujoco.mj_resetData(model, data)
    data.qpos[:7], data.qpos[7:] = root, angles
    mujoco.mj_forward(model, data)
    return data


def contacts(body, ground=False):
    _, model, data = body
    pairs = [[model.geom(g).name for g in data.contact[i].geom] for i in range(data.ncon)]
    return [tuple(sorted(pair)) for pair in pairs if ("ground" in pair) == ground]


def test_joint_order_ranges_and_mass(body):
    robot, model, _ = body
    assert robot.joint_names == ORDER
    assert [model.actuator(i).name for i in range(model.nu)] == ORDER
    assert [model.joint(i + 1).name for i in range(29)] == ORDER
    assert model.body_mass.sum() == pytest.approx(33.341142, abs=1e-9)
    assert model.body("torso").mass[0] == 7.818
    assert model.body("pelvis").mass[0] == 3.813
    assert model.body("left_wrist_yaw").mass[0] == model.body("right_wrist_yaw").mass[0] == 0.254576
    ranges = {
        "left_shoulder_pitch": (-3.0892, 2.6704), "right_shoulder_pitch": (-3.0892, 2.6704),
        "left_shoulder_roll": (-1.5882, 2.2515), "right_shoulder_roll": (-2.2515, 1.5882),
        "right_elbow": (-1.0472, 2.0944), "waist_roll": (-0.52, 0.52), "waist_yaw": (-2.618, 2.618),
        "right_hip_roll": (-2.9671, 0.5236), "left_wrist_yaw": (-1.61443, 1.61443),
    }  # fmt: skip
    for name, expected in ranges.items():
        np.testing.assert_allclose(model.joint(name).range, expected)


@pytest.mark.parametrize("waist", ["hard", "soft"])
def test_drives(waist):
    robot = make_robot("g1-29" if waist == "hard" else "g1-29-soft-waist")
    model = build_model(robot, timestep=0.005)
    # stiffness, damping, effort, armature, rad per unit action (1.25 effort / stiffness)
    expected = {
        "hip_pitch": (99.09843, 6.30880, 139, 0.025101925, 1.7533),
        "hip_roll": (99.09843, 6.30880, 139, 0.025101925, 1.7533),
        "hip_yaw": (40.17924, 2.55789, 88, 0.01017752, 2.7377),
        "knee": (99.09843, 6.30880, 139, 0.025101925, 1.7533),
        "ankle_pitch": (28.50125, 1.81445, 50, 0.00721945, 2.1929),
        "waist_yaw": (300, 5, 88, 0.01017752, 0.3667),
        "waist_roll": (300, 5, 50, 0.00721945, 0.2083),
        "waist_pitch": (300, 5, 50, 0.00721945, 0.2083),
        "elbow": (14.25062, 0.90722, 25, 0.003609725, 2.1929),
        "wrist_roll": (14.25062, 0.90722, 25, 0.003609725, 2.1929),
        "wrist_yaw": (16.77833, 1.06814, 5, 0.00425, 0.3725),
    }
    if waist == "soft":
        expected["waist_yaw"] = (40.17924, 2.55789, 88, 0.01017752, 2.7377)
        expected["waist_roll"] = (28.50125, 1.81445, 50, 0.00721945, 2.1929)
        expected["waist_pitch"] = expected["waist_roll"]
    for name, (kp, kd, effort, armature, unit) in expected.items():
        for joint in (f"left_{name}", f"right_{name}") if "waist" not in name else (name,):
            servo = model.actuator(joint)
            np.testing.assert_allclose(servo.gainprm[0], kp, rtol=1e-5)
            np.testing.assert_allclose(servo.biasprm[1:3], [-kp, -kd], rtol=1e-5)
            np.testing.assert_allclose(servo.forcerange, [-effort, effort])
            dof = model.joint(joint).dofadr[0]
            assert model.dof_armature[dof] == armature
            assert model.dof_frictionloss[dof] == 0.03
            assert 1.25 * effort / servo.gainprm[0] == pytest.approx(unit, abs=1e-4)


def test_other_robots_keep_their_joints():
    for name in ("g1", "quadruped"):
        model = build_model(make_robot(name), timestep=0.005)
        np.testing.assert_array_equal(model.dof_armature[6:], 0.01)
        np.testing.assert_array_equal(model.dof_frictionloss, 0)


def test_legs_are_those_of_the_12_joint_robot(body):
    _, model, _ = body
    small = build_model(make_robot("g1"), timestep=0.005)
    for name in ORDER[:12]:
        mine, other = model.body(name), small.body(name)
        for field in ("pos", "quat", "ipos", "iquat", "inertia", "mass"):
            np.testing.assert_array_equal(getattr(mine, field), getattr(other, field))
        np.testing.assert_array_equal(model.joint(name).range, small.joint(name).range)
        np.testing.assert_array_equal(model.joint(name).axis, small.joint(name).axis)


def test_default_pose_stands_on_its_soles_without_touching_itself(body):
    robot, model, _ = body
    data = pose(body, robot.default_pose)
    soles = [i for i in range(model.ngeom) if "_sole_" in model.geom(i).name]
    heights = data.geom_xpos[soles, 2] - model.geom_size[soles, 0]
    np.testing.assert_allclose(heights, 0, atol=2e-4)
    assert contacts(body) == []
    np.testing.assert_allclose(robot.default_pose[:6], [-0.1, 0, 0, 0.3, -0.2, 0])
    assert not robot.default_pose[12:].any()
    head, torso = data.body("head").xpos, data.body("torso").xpos
    np.testing.assert_allclose(head - torso, [0, 0, 0.35], atol=1e-12)
    shoulder = data.body("left_shoulder_pitch").xpos - data.body("pelvis").xpos
    assert shoulder[2] == pytest.approx(0.29178, abs=1e-5)


def test_imu_sites(body):
    robot, model, _ = body
    data = pose(body, robot.default_pose)
    for name, place in (
        ("pelvis", (0.04525, 0, -0.08339)),
        ("torso", (-0.03959, -0.00224, 0.14792)),
    ):
        np.testing.assert_allclose(data.site(f"{name}_imu").xpos - data.body(name).xpos, place)
        assert model.site(f"{name}_imu").bodyid[0] == model.body(name).id


def test_the_robot_is_its_own_mirror_image(body):
    robot, model, _ = body
    angles = robot.default_pose + np.random.default_rng(0).uniform(-0.3, 0.3, 29)
    swap = {"left": "right", "right": "left"}

    def frames(q):
        data = pose(body, q)
        return {model.body(i).name: data.xpos[i].copy() for i in range(1, model.nbody)}

    one, other = frames(angles), frames(angles[list(robot.mirror)] * robot.mirror_sign)
    for name, position in one.items():
        twin = "_".join(swap.get(part, part) for part in name.split("_"))
        np.testing.assert_allclose(position * [1, -1, 1], other[twin], atol=1e-9)


def test_signs_of_arms_and_waist(body):
    robot = body[0]

    def hand_after(joint, angle):
        angles = robot.default_pose.copy()
        angles[robot.joint_names.index(joint)] += angle
        return pose(body, angles).body("left_wrist_yaw").xpos.copy()

    rest = hand_after("left_elbow", 0.0)
    assert hand_after("left_elbow", 1.0)[2] < rest[2] - 0.1  # the forearm, level before, sinks
    assert hand_after("left_shoulder_pitch", -0.8)[2] > rest[2] + 0.1  # arm up and forward
    assert hand_after("left_shoulder_roll", 0.8)[1] > rest[1] + 0.1  # arm out
    assert hand_after("waist_yaw", 0.5)[1] > rest[1] + 0.05  # turns left
    assert hand_after("waist_pitch", 0.5)[2] < rest[2] - 0.05  # bows


CROSSED = {
    "arm and torso": ({"left_shoulder_roll": -0.6}, ("left_shoulder_yaw_contact", "torso_contact")),
    "hand and thigh": (
        {"left_shoulder_pitch": -0.3, "left_elbow": 1.5, "left_hip_pitch": -1.3},
        ("left_hip_yaw_contact", "left_wrist_yaw_contact"),
    ),
    "legs": (
        {"left_hip_roll": -0.5, "right_hip_roll": 0.5},
        ("left_knee_contact", "right_knee_contact"),
    ),
    "hands": (
        {"left_shoulder_yaw": -0.6, "right_shoulder_yaw": 0.6},
        ("left_wrist_yaw_contact", "right_wrist_yaw_contact"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CROSSED)
def test_self_collision_where_it_matters(body, case):
    robot = body[0]
    moved, pair = CROSSED[case]
    angles = robot.default_pose.copy()
    for joint, angle in moved.items():
        angles[robot.joint_names.index(joint)] = angle
    pose(body, angles, root=(0, 0, 2, 1, 0, 0, 0))
    assert pair in contacts(body)


def test_neighbours_never_touch(body):
    model = body[1]
    rng = np.random.default_rng(1)
    low, high = model.jnt_range[1:].T
    touched = set()
    for _ in range(300):
        pose(body, rng.uniform(low, high), root=(0, 0, 2, 1, 0, 0, 0))
        touched |= {tuple(n.removesuffix("_contact") for n in pair) for pair in contacts(body)}
    assert touched
    for one, other in touched:
        assert "shoulder_roll" not in one + other
        assert not {one, other} <= {"pelvis", "torso", "head"}
        legs = [
            n for n in (one, other) if any(part in n for part in ("hip", "knee", "ankle", "sole"))
        ]
        if len(legs) == 2:
            assert legs[0].partition("_")[0] != legs[1].partition("_")[0]
        arms = [
            n for n in (one, other) if any(part in n for part in ("shoulder", "elbow", "wrist"))
        ]
        if len(arms) == 2:
            assert arms[0].partition("_")[0] != arms[1].partition("_")[0]
        if legs and len(legs) + len(arms) == 1:  # pelvis or torso with a leg
            raise AssertionError((one, other))


@pytest.mark.parametrize("turn", [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_lying_robot_rests_on_capsules(turn):
    robot = make_robot("g1-29")
    engine = RolloutEngine(robot, 1, timestep=0.005, substeps=4)
    half = np.sqrt(0.5)
    qpos = np.zeros((1, 36))
    qpos[0, 2:7] = 0.5, half, half * turn[0], half * turn[1], 0
    qpos[0, 7:] = robot.default_pose
    engine.set_state(np.arange(1), qpos, np.zeros((1, 35)))
    for _ in range(100):
        engine.step(robot.default_pose[None])
    assert np.isfinite(engine.qpos).all()
    assert 0.03 < engine.qpos[0, 2] < 0.35
    assert abs(engine.qvel[0, :3]).max() < 0.5
    model, data = engine.model, mujoco.MjData(engine.model)
    data.qpos[:] = engine.qpos[0]
    mujoco.mj_forward(model, data)
    assert data.geom_xpos[1:, 2].min() > -0.02  # nothing sinks


def test_contact_forces_of_hips_and_shoulders_are_measured():
    robot = make_robot("g1-29")
    engine = RolloutEngine(robot, 1, timestep=0.005, substeps=4)
    qpos = np.zeros((1, 36))
    qpos[0, 2:7] = 0.2, np.sqrt(0.5), np.sqrt(0.5), 0, 0  # on its right side
    engine.set_state(np.arange(1), qpos, np.zeros((1, 35)))
    seen = dict.fromkeys(robot.touching, 0.0)
    for _ in range(10):  # before it rolls over
        engine.step(np.zeros((1, 29)))
        for name in seen:
            seen[name] = max(seen[name], float(np.linalg.norm(engine.sensor(f"{name}_force"))))
    assert seen["right_shoulder_roll"] > 10
    assert seen["right_hip_yaw"] > 10
    assert seen["left_shoulder_roll"] == seen["left_hip_yaw"] == 0


def test_gains_are_stable_at_five_milliseconds():
    robot = make_robot("g1-29")
    engine = RolloutEngine(robot, 4, timestep=0.005, substeps=4)
    rng = np.random.default_rng(0)
    qpos = np.tile(np.r_[0, 0, 1.5, 1, 0, 0, 0, robot.default_pose], (4, 1))
    engine.set_state(np.arange(4), qpos, np.zeros((4, 35)))
    for _ in range(20):  # in the air
        engine.step(robot.default_pose + 0.2 * rng.standard_normal((4, 29)))
    assert abs(engine.qvel).max() < 30
