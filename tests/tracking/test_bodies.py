"""What is seen of the bodies: layout index by index, and heading frames against scipy."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from prism_motor.sim.engine import RolloutEngine
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import (
    body_observation_names,
    heading,
    kinematics,
    observe_bodies,
    read_bodies,
    to_heading,
)

EXPECTED = ["pelvis"]
EXPECTED += [
    f"{side}_{link}"
    for side in ("left", "right")
    for link in ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
]
EXPECTED += ["waist_yaw", "waist_roll", "torso"]
EXPECTED += [
    f"{side}_{link}"
    for side in ("left", "right")
    for link in (
        "shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow",
        "wrist_roll", "wrist_pitch", "wrist_yaw",
    )
]  # fmt: skip
EXPECTED += ["head"]


@pytest.fixture(scope="module")
def states():
    rng = np.random.default_rng(0)
    qpos = np.concatenate([rng.normal(size=(5, 7)), rng.uniform(-1, 1, (5, 29))], axis=1)
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    return qpos, rng.normal(size=(5, 35))


def test_there_are_31_bodies_in_order():
    assert list(kinematics().names) == EXPECTED


def test_layout_index_by_index(states):
    bodies = kinematics().bodies(*states)
    seen = observe_bodies(bodies)
    names = body_observation_names(kinematics().names)
    assert seen.shape == (5, 463)
    assert seen.dtype == np.float32
    assert len(names) == 463 == len(set(names))
    for n in range(5):
        root = Rotation.from_quat(np.roll(states[0][n, 3:7], -1))
        forward = root.apply([1, 0, 0])
        back = Rotation.from_euler("z", -np.arctan2(forward[1], forward[0]))
        expected = {"pelvis_height": states[0][n, 2]}
        for b, body in enumerate(EXPECTED):
            place = back.apply(bodies.position[:, b, n] - bodies.position[:, 0, n])
            turn = (back * Rotation.from_matrix(bodies.rotation[:, :, b, n])).as_matrix()
            moving = back.apply(bodies.velocity[:, b, n])
            turning = back.apply(bodies.angular_velocity[:, b, n])
            for i, axis in enumerate("xyz"):
                expected[f"{body}_position_{axis}"] = place[i]
                expected[f"{body}_rotation_x{axis}"] = turn[i, 0]  # the image of the x axis
                expected[f"{body}_rotation_z{axis}"] = turn[i, 2]
                expected[f"{body}_velocity_{axis}"] = moving[i]
                expected[f"{body}_angular_velocity_{axis}"] = turning[i]
        assert expected.keys() - set(names) == {f"pelvis_position_{axis}" for axis in "xyz"}
        np.testing.assert_allclose(seen[n], [expected[name] for name in names], atol=1e-5)


def test_groups_are_where_the_specification_has_them():
    names = body_observation_names(EXPECTED)
    assert names[0] == "pelvis_height"
    assert names[1] == "left_hip_pitch_position_x"
    assert names[90] == "head_position_z"
    assert names[91] == "pelvis_rotation_xx"
    assert names[91 + 186] == "pelvis_velocity_x"
    assert names[91 + 186 + 93] == "pelvis_angular_velocity_x"
    assert names[-1] == "head_angular_velocity_z"


def test_some_bodies_are_those_columns_of_all(states):
    bodies = kinematics().bodies(*states)
    keep = [0, 4, 6, 15, 30]
    names = [kinematics().names[i] for i in keep]
    everything = dict(
        zip(body_observation_names(kinematics().names), observe_bodies(bodies).T, strict=True)
    )
    some = observe_bodies(bodies, keep)
    assert some.shape == (5, 15 * len(keep) - 2)
    for name, column in zip(body_observation_names(names), some.T, strict=True):
        np.testing.assert_array_equal(column, everything[name])


def test_turning_and_shifting_the_world_changes_nothing(states):
    qpos, qvel = states
    turn = Rotation.from_euler("z", 2.1)
    moved, speeds = qpos.copy(), qvel.copy()
    moved[:, :3] = turn.apply(qpos[:, :3]) + np.array([5.0, -3.0, 0.0])
    moved[:, 3:7] = np.roll(
        (turn * Rotation.from_quat(np.roll(qpos[:, 3:7], -1, 1))).as_quat(), 1, 1
    )
    speeds[:, :3] = turn.apply(qvel[:, :3])
    one, other = (observe_bodies(kinematics().bodies(*s)) for s in (states, (moved, speeds)))
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_root_that_points_straight_up_has_the_worlds_heading():
    upright = Rotation.from_euler("y", -90, degrees=True).as_matrix()[..., None]
    np.testing.assert_array_equal(heading(upright), [[1.0], [0.0]])
    assert np.isfinite(to_heading(np.ones((3, 1)), heading(upright))).all()


def test_bodies_of_an_engine_are_of_its_current_state():
    robot = make_robot("g1-29")
    engine = RolloutEngine(robot, 3, timestep=0.005, substeps=4)
    rng = np.random.default_rng(0)
    for _ in range(5):
        engine.step(robot.default_pose + 0.2 * rng.standard_normal((3, 29)))
    bodies = read_bodies(engine)
    np.testing.assert_allclose(bodies.position[:, 0].T, engine.qpos[:, :3], atol=1e-12)
    np.testing.assert_allclose(bodies.velocity[:, 0].T, engine.qvel[:, :3], atol=1e-12)
    # The sensor of a foot is one physics step older: it lags by about its velocity times 5 ms.
    foot = kinematics().names.index("left_ankle_roll")
    lag = bodies.position[:, foot].T - engine.sensor("left_ankle_roll_position")
    np.testing.assert_allclose(lag, 0.005 * bodies.velocity[:, foot].T, atol=2e-4)
