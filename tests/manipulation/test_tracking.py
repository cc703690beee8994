from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from prism_motor.manipulation.rollout import commanded_pose, orientation_error, position_error


def quaternion(rotation):
    return np.roll(rotation.as_quat(), 1)


def test_orientation_error_is_the_angle_between_two_rotations():
    generator = np.random.default_rng(0)
    one, other = (Rotation.random(20, random_state=generator) for _ in range(2))
    expected = (one * other.inv()).magnitude()
    found = [
        orientation_error(quaternion(a), quaternion(b)) for a, b in zip(one, other, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_quaternion_and_its_negative_are_the_same_rotation():
    turn = quaternion(Rotation.from_rotvec([0.1, 0.2, 0.3]))
    assert orientation_error(turn, -turn) == pytest.approx(0, abs=1e-12)


def test_tiny_angles_are_exact():
    tiny = quaternion(Rotation.from_rotvec([1e-9, 0, 0]))
    assert orientation_error(tiny, np.array([1.0, 0, 0, 0])) == pytest.approx(1e-9, rel=1e-6)


def test_position_error_is_euclidean():
    assert position_error(np.array([1.0, 2, 3]), np.array([1.0, 5, 7])) == 5


def test_libero_adds_the_action_to_the_pose_before_the_step():
    libero = SimpleNamespace(task=SimpleNamespace(suite="libero_goal"))
    start = Rotation.from_euler("xyz", [0.4, -0.2, 1.0])
    before = SimpleNamespace(position=np.array([0.1, 0.2, 0.3]), quaternion=quaternion(start))
    action = np.array([0.5, -2.0, 0.0, 0.2, 0.1, -0.4, 1.0])
    position, turned = commanded_pose(libero, before, action)
    np.testing.assert_allclose(position, [0.125, 0.15, 0.3])
    expected = Rotation.from_rotvec([0.1, 0.05, -0.2]) * start
    assert orientation_error(turned, quaternion(expected)) == pytest.approx(0, abs=1e-12)
    _, still = commanded_pose(libero, before, np.zeros(7))
    np.testing.assert_allclose(still, before.quaternion)
