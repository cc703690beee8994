"""Where to take hold of things: kinds of grasps, and which category is taken how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from prism.manipulation.experts.controller import facing, nearest_turn, turn_between
from prism.manipulation.experts.scene import Array, Pose, Scene

DOWN = np.array([0.0, 0.0, -1.0])
_FINGERTIP = 0.009
"""How far the fingers reach beyond the point between their pads."""
_CLEARANCE = 0.012
"""Distance to other things that is enough for the open hand."""


@dataclass(frozen=True)
class Across:
    """From above, across the narrower side of the thing's outline."""

    depth: float = 0.028
    """Below its top; the palm is 31 mm above the pads."""


@dataclass(frozen=True)
class Rim:
    """From above, the wall between the fingers, on the side with the most room."""

    radius: float
    """Of the wall where it is pinched."""
    centre: tuple[float, float] = (0.0, 0.0)
    """Of the ring, in the frame of the object."""
    depth: float = 0.022
    """Below the rim."""


@dataclass(frozen=True)
class Part:
    """At a given point of the object, in a given direction, both in its frame."""

    point: tuple[float, float, float]
    """Between the finger pads."""
    closing: tuple[float, float, float]
    """Direction from finger to finger."""
    ahead: tuple[float, float, float] = (0.0, 0.0, -1.0)
    """Where the hand looks."""


Grasp = Across | Rim | Part

GRASPS: dict[str, Grasp] = {
    "akita_black_bowl": Rim(radius=0.044),
    "white_yellow_mug": Rim(radius=0.040, centre=(-0.018, 0.0)),
    "porcelain_mug": Rim(radius=0.039, centre=(0.017, 0.0)),
    "plate": Rim(radius=0.060, depth=0.005),
    "moka_pot": Part(point=(0.0, 0.071, 0.035), closing=(1.0, 0.0, 0.0)),
}
"""Grasps by category; everything else is taken across."""


def plan_grasp(scene: Scene, name: str, goal: Array) -> Pose:
    """Choose the pose in which the hand closes on an object.

    Args:
        scene: Where it happens.
        name: What is grasped.
        goal: Where the object will go; the hand should have room there too.
    """
    grasp = GRASPS.get(scene.category(name), Across())
    hand, others = scene.hand(), scene.obstacles(name)
    way = goal - scene.pose(name).position

    def cost(pose: Pose) -> float:
        here = others.distance(hand_points(pose))
        there = others.distance(hand_points(pose.moved(way)))
        crowded = max(0.0, _CLEARANCE - here) + 0.3 * max(0.0, _CLEARANCE - there)
        return turn_between(pose.rotation, hand.rotation) + 100.0 * crowded

    poses = [
        Pose(pose.position, nearest_turn(pose.rotation, hand.rotation))
        for pose in _candidates(scene, name, grasp)
    ]
    return min(poses, key=cost)


def hand_points(pose: Pose) -> Array:
    """Return points that fill the open hand at a pose."""
    return pose.position + _HAND @ pose.rotation.T


def outline(points: Array) -> tuple[float, Array]:
    """Return the smallest rectangle around points seen from above: yaw and half sizes."""
    best = (np.inf, 0.0, np.zeros(2))
    for yaw in np.arange(0.0, np.pi / 2, np.pi / 60):
        axes = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
        half = np.ptp(points[:, :2] @ axes.T, axis=0) / 2
        best = min(best, (float(half.prod()), float(yaw), half), key=lambda entry: entry[0])
    return best[1], best[2]


def _candidates(scene: Scene, name: str, grasp: Grasp) -> Iterator[Pose]:
    body, points = scene.pose(name), scene.boxes(name).corners()
    if isinstance(grasp, Part):
        rotation = facing(
            body.rotation @ np.array(grasp.ahead), body.rotation @ np.array(grasp.closing)
        )
        yield Pose(body.at(grasp.point), rotation)
    elif isinstance(grasp, Rim):
        centre = body.at((*grasp.centre, 0.0))
        height = points[:, 2].max() - grasp.depth
        for angle in np.arange(0.0, 2 * np.pi, np.pi / 12):
            out = np.array([np.cos(angle), np.sin(angle), 0.0])
            at = centre + grasp.radius * out
            yield Pose(np.array([at[0], at[1], height]), facing(DOWN, out))
    else:
        yaw, half = outline(points)
        low, high = points.min(axis=0), points.max(axis=0)
        height = max(high[2] - grasp.depth, low[2] + _FINGERTIP + 0.003)
        middle = (low + high) / 2
        for turn, width in ((0.0, half[0]), (np.pi / 2, half[1])):
            if width <= half.min() + 0.004:
                closing = np.array([np.cos(yaw + turn), np.sin(yaw + turn), 0.0])
                yield Pose(np.array([middle[0], middle[1], height]), facing(DOWN, closing))


def _filled(low: tuple[float, float, float], high: tuple[float, float, float]) -> Array:
    axes = [np.linspace(a, b, 4) for a, b in zip(low, high, strict=True)]
    return np.array(np.meshgrid(*axes)).reshape(3, -1).T


_HAND = np.concatenate(
    [
        _filled((0.040, -0.010, -0.030), (0.056, 0.010, _FINGERTIP)),
        _filled((-0.056, -0.010, -0.030), (-0.040, 0.010, _FINGERTIP)),
        _filled((-0.100, -0.030, -0.090), (0.100, 0.030, -0.035)),
    ]
)
"""Points of the open hand in its frame: two fingers and the palm."""
