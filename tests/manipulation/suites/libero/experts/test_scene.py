"""Boxes, outlines and the controller, against independent computations."""

import numpy as np
from scipy.spatial.transform import Rotation

from prism_motor.manipulation.suites.libero.experts.expert import Gains, steer
from prism_motor.manipulation.suites.libero.experts.grasps import outline
from prism_motor.manipulation.suites.libero.experts.scene import (
    Boxes,
    Pose,
    facing,
    nearest_turn,
    turn_between,
)
from prism_motor.manipulation.suites.libero.experts.skills import CLOSED, HandCommand


def test_distance_to_a_turned_box_agrees_with_its_densely_sampled_surface():
    turn = Rotation.from_euler("xyz", [0.4, -0.7, 1.1]).as_matrix()
    centre, half = np.array([0.3, -0.1, 0.2]), np.array([0.05, 0.02, 0.1])
    boxes = Boxes(centre[None], turn[None], half[None])
    grid = np.array(np.meshgrid(*[np.linspace(-1, 1, 61)] * 3)).reshape(3, -1).T
    filled = centre + (grid * half) @ turn.T
    for point in np.random.default_rng(0).normal(centre, 0.08, (40, 3)):
        sampled = np.linalg.norm(filled - point, axis=1).min()
        distance = max(0.0, boxes.distance(point[None]))
        assert abs(distance - min(sampled, 0.05)) < 3e-3
    assert np.isclose(boxes.distance(centre[None]), -0.02)


def test_corners_of_a_box_are_its_corners():
    boxes = Boxes(np.zeros((1, 3)), np.eye(3)[None], np.array([[1.0, 2.0, 3.0]]))

    assert {tuple(corner) for corner in np.abs(boxes.corners())} == {(1.0, 2.0, 3.0)}
    assert len({tuple(corner) for corner in boxes.corners()}) == 8


def test_the_outline_of_a_turned_box_has_its_sides():
    yaw = 0.5
    turn = Rotation.from_euler("z", yaw).as_matrix()
    corners = Boxes(np.ones((1, 3)), turn[None], np.array([[0.05, 0.02, 0.1]])).corners()

    found, half = outline(corners)

    assert np.allclose(sorted(half), [0.02, 0.05], atol=2e-3)
    assert min(abs(found - yaw), abs(found + np.pi / 2 - yaw)) < np.pi / 60


def test_the_hand_looks_ahead_and_closes_across():
    ahead, closing = np.array([0.0, 0.6, -0.8]), np.array([1.0, 0.3, 0.0])
    rotation = facing(ahead, closing)

    assert np.allclose(rotation @ rotation.T, np.eye(3))
    assert np.isclose(np.linalg.det(rotation), 1.0)
    assert np.allclose(rotation[:, 2], ahead)
    assert rotation[:, 0] @ closing > 0


def test_swapping_the_fingers_spares_half_a_turn():
    rotation = facing(np.array([0.0, 0.0, -1.0]), np.array([-1.0, 0.1, 0.0]))
    hand = facing(np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0]))

    assert turn_between(nearest_turn(rotation, hand), hand) < 0.2


def test_actions_point_to_the_target_and_stay_in_range():
    hand = Pose(np.zeros(3), np.eye(3))
    turn = Rotation.from_rotvec([0.0, 0.0, 0.1]).as_matrix()
    near = steer(
        hand, HandCommand(Pose(np.array([0.01, 0.0, -0.02]), turn), CLOSED), Gains(12.0, 2.0)
    )
    far = steer(hand, HandCommand(Pose(np.array([3.0, 4.0, 0.0]), turn), CLOSED), Gains())

    assert np.allclose(near, [0.12, 0.0, -0.24, 0.0, 0.0, 0.2, 1.0])
    assert np.allclose(far[:3], [0.6, 0.8, 0.0])
