"""Grasps: their kinds, which one each category of object gets, and how one is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from prism_motor.manipulation.suites.libero.experts.scene import (
    Array,
    Boxes,
    LiberoScene,
    Pose,
    facing,
    nearest_turn,
    turn_between,
)

DOWN = np.array([0.0, 0.0, -1.0])
_FINGERTIP = 0.009
"""How far the fingers reach beyond the point between their pads."""
_CLEARANCE = 0.012
"""Sufficient distance of the hand to other objects."""
WIDE = 0.08
"""Distance between the fingers of the open hand."""
_LEAN = 0.4
"""Angle by which the hand may lean outwards to pinch a wall with little room inside."""
_NARROW = 0.045
"""Distance between the fingers around a wall, where there is little room."""


@dataclass(frozen=True)
class Across:
    """From above, across the narrower side of the object's outline."""

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
    """Direction that the hand points in."""


Grasp = Across | Rim | Part

GRASPS: dict[str, Grasp] = {
    "akita_black_bowl": Rim(radius=0.044),
    "white_yellow_mug": Rim(radius=0.040, centre=(-0.018, 0.0)),
    "porcelain_mug": Rim(radius=0.039, centre=(0.017, 0.0)),
    "moka_pot": Part(point=(0.0, 0.071, 0.035), closing=(1.0, 0.0, 0.0)),
}
"""Grasps by category; the default is :class:`Across`."""


@dataclass(frozen=True)
class Hold:
    """A chosen grasp."""

    pose: Pose
    """Of the hand when it closes."""
    width: float
    """Distance between the fingers on the way there."""

    def moved(self, way: Array) -> Hold:
        """Return the same hold elsewhere."""
        return Hold(self.pose.moved(way), self.width)


def plan_grasp(scene: LiberoScene, name: str, goal: Array, how: Grasp | None = None) -> Hold:
    """Choose how the hand grasps an object.

    Args:
        scene: The scene.
        name: Name of the object.
        goal: Where the object will go; the hand should have room there too.
        how: Kind of grasp; default: that of the object's category.
    """
    grasp = how or GRASPS.get(scene.category(name), Across())
    hand, others = scene.hand(), scene.obstacles(name)
    way = goal - scene.pose(name).position

    def cost(hold: Hold) -> float:
        cost = turn_between(hold.pose.rotation, hand.rotation)
        cost += _crowding(others, hold) + 0.3 * _crowding(others, hold.moved(way))
        cost += 0.5 if hold.width < WIDE else 0.0
        return cost

    return min(
        (
            Hold(Pose(pose.position, nearest_turn(pose.rotation, hand.rotation)), width)
            for pose in _candidates(scene, name, grasp)
            for width in ((WIDE, _NARROW) if isinstance(grasp, Rim) else (WIDE,))
        ),
        key=cost,
    )


def room(others: Boxes, pose: Pose, width: float) -> tuple[float, float]:
    """Return the distances of the fingers, ``width`` apart, and of the palm to other objects."""
    finger = _FINGER + np.array([width / 2, 0.0, 0.0])
    fingers = np.concatenate([finger, finger * [-1.0, 1.0, 1.0]])
    return (
        others.distance(pose.position + fingers @ pose.rotation.T),
        others.distance(pose.position + _PALM @ pose.rotation.T),
    )


def _crowding(others: Boxes, hold: Hold) -> float:
    """Return the cost of too little room; a collision costs more than any rotation."""
    fingers, palm = room(others, hold.pose, hold.width)
    blocked = 4.0 if fingers < 0.001 else 0.0
    # Walls are thinner than the spacing of the palm's points: near is as bad as inside.
    return blocked + 100.0 * max(0.0, _CLEARANCE - fingers) + 300.0 * max(0.0, _CLEARANCE - palm)


def outline(points: Array) -> tuple[float, Array]:
    """Return the smallest rectangle around points seen from above: yaw and half sizes."""
    best = (np.inf, 0.0, np.zeros(2))
    for yaw in np.arange(0.0, np.pi / 2, np.pi / 60):
        axes = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
        half = np.ptp(points[:, :2] @ axes.T, axis=0) / 2
        best = min(best, (float(half.prod()), float(yaw), half), key=lambda entry: entry[0])
    return best[1], best[2]


def _candidates(scene: LiberoScene, name: str, grasp: Grasp) -> Iterator[Pose]:
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
            # Leaning towards its own base, the arm would reach the limits of its wrist.
            for lean in (0.0, _LEAN) if out[0] < 0.3 else (0.0,):
                ahead = np.cos(lean) * DOWN - np.sin(lean) * out
                yield Pose(np.array([at[0], at[1], height]), facing(ahead, out))
    else:
        yaw, half = outline(points)
        low, high = points.min(axis=0), points.max(axis=0)
        height = max(high[2] - grasp.depth, low[2] + _FINGERTIP + 0.003)
        middle = np.array([*(low + high)[:2] / 2, height])
        for turn, width, length in ((0.0, half[0], half[1]), (np.pi / 2, half[1], half[0])):
            if width > half.min() + 0.004:
                continue
            closing = np.array([np.cos(yaw + turn), np.sin(yaw + turn), 0.0])
            along = np.cross(DOWN, closing)
            for aside in (0.0, 0.5, -0.5):
                at = middle + aside * max(0.0, length - 0.012) * along
                yield Pose(at, facing(DOWN, closing))


def _filled(
    low: tuple[float, float, float], high: tuple[float, float, float], counts: tuple[int, int, int]
) -> Array:
    axes = [np.linspace(a, b, count) for a, b, count in zip(low, high, counts, strict=True)]
    return np.array(np.meshgrid(*axes)).reshape(3, -1).T


_FINGER = _filled((0.000, -0.010, -0.030), (0.016, 0.010, _FINGERTIP), (5, 5, 5))
_PALM = _filled((-0.100, -0.030, -0.220), (0.100, 0.030, -0.035), (13, 5, 10))
"""Points of the hand in its frame: a finger of the closed hand; the palm and its path."""
