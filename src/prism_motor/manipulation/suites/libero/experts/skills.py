"""Skills: each yields one command per control step and reacts to the current scene."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from prism_motor.manipulation.suites.libero.experts.grasps import (
    DOWN,
    WIDE,
    Grasp,
    plan_grasp,
    room,
)
from prism_motor.manipulation.suites.libero.experts.scene import (
    Array,
    LiberoScene,
    Pose,
    facing,
    nearest_turn,
    turn_between,
)

OPEN, KEEP, CLOSED = -1.0, 0.0, 1.0
"""Values of the seventh action component, which moves the fingers."""

_ABOVE = 0.10
"""Distance behind a grasp at which the hand lines up."""
_LEAN = 0.6
"""Angle of a pushing hand from the vertical."""
_MARGIN = 0.04
"""Clearance of the hand and its load above other objects."""


@dataclass(frozen=True)
class HandCommand:
    """The command of a skill at one step."""

    pose: Pose
    """Where the hand should go."""
    fingers: float
    """``OPEN``, ``KEEP`` or ``CLOSED``."""
    speed: float = 1.0
    """Largest norm of the linear action."""


Skill = Iterator[HandCommand]
"""Yields what the hand should do next, one command per control step."""


def move(
    scene: LiberoScene,
    to: Pose,
    fingers: float,
    *,
    near: float = 0.01,
    turned: float = 0.10,
    patience: int = 80,
    speed: float = 1.0,
    until: Callable[[], bool] = lambda: False,
) -> Skill:
    """Go straight to a pose; stop when near, when ``until`` is true, or after a time limit."""
    for _ in range(patience):
        hand = scene.hand()
        if until() or (
            np.linalg.norm(hand.position - to.position) < near
            and turn_between(hand.rotation, to.rotation) < turned
        ):
            return
        yield HandCommand(to, fingers, speed)


def is_stuck(distance: Callable[[], float], steps: int = 6) -> Callable[[], bool]:
    """Return a function that, called once per step, detects when a distance stops shrinking.

    Without it, demonstrations would contain pauses, and a policy that sees the same observation
    step after step cannot learn when a pause ends.
    """
    far: list[float] = []

    def ask() -> bool:
        far.append(distance())
        return len(far) > steps and far[-1] > far[-1 - steps] - 0.001

    return ask


def is_blocked(scene: LiberoScene, to: Pose) -> Callable[[], bool]:
    """Return a function that, called once per step, detects when the hand is blocked."""
    return is_stuck(lambda: float(np.linalg.norm(scene.hand().position - to.position)))


def stay(scene: LiberoScene, fingers: float, steps: int) -> Skill:
    """Hold the pose while the fingers move."""
    pose = scene.hand()
    for _ in range(steps):
        yield HandCommand(pose, fingers)


def narrow(scene: LiberoScene, width: float) -> Skill:
    """Close the fingers to a width."""
    pose = scene.hand()
    for _ in range(10):
        if scene.opening() <= width:
            return
        yield HandCommand(pose, CLOSED)


def grasp(scene: LiberoScene, name: str, goal: Array, how: Grasp | None = None) -> Skill:
    """Line up behind the grasp, move to it and close the fingers.

    Args:
        scene: The scene.
        name: Name of the object.
        goal: Where it will go.
        how: Kind of grasp; default: that of its category.
    """
    hold = plan_grasp(scene, name, goal, how)
    at = hold.pose
    behind = at.moved(-_ABOVE * at.rotation[:, 2])
    yield from rise(scene, _height_between(scene, scene.hand().position, behind.position), OPEN)
    yield from move(scene, _raised(scene, behind), OPEN, near=0.03, turned=0.3)
    yield from move(scene, behind, OPEN, near=0.02, turned=0.1)
    if hold.width < WIDE:
        yield from narrow(scene, hold.width)
    fingers = OPEN if hold.width == WIDE else KEEP
    yield from move(scene, at, fingers, near=0.004, turned=0.05, patience=40)
    yield from stay(scene, CLOSED, 10)


def insert(scene: LiberoScene, name: str, point: Array, enter: Array) -> Skill:
    """Carry a held object to an opening, move it straight in, release it and back out.

    Args:
        scene: The scene.
        name: Name of the held object.
        point: Final position of the object's origin.
        enter: From there to where insertion starts.
    """
    hand = scene.hand()
    end = hand.moved(point - scene.pose(name).position)
    yield from rise(scene, max(hand.position[2] + 0.03, end.position[2]), CLOSED)
    yield from move(scene, end.moved(enter), CLOSED, near=0.01, turned=0.08)
    yield from move(scene, end, CLOSED, near=0.01, speed=0.5)
    yield from stay(scene, OPEN, 8)
    yield from move(scene, end.moved(enter), OPEN, near=0.03)
    yield from rise(scene, end.position[2] + 0.2, OPEN)


def place(scene: LiberoScene, name: str, point: Array, *, turn: Array | None = None) -> Skill:
    """Carry a held object over a point, lower it, release it and back off.

    Args:
        scene: The scene.
        name: Name of the held object.
        point: Final position of the object's origin.
        turn: Final rotation of the object; default: as it is held.
    """
    hand, held = scene.hand(), scene.pose(name)
    grip = hand.rotation.T @ (held.position - hand.position)
    lowest = scene.boxes(name).corners()[:, 2].min()
    rotation = hand.rotation if turn is None else turn @ held.rotation.T @ hand.rotation
    below = hand.position[2] - min(lowest, hand.position[2] - 0.01)
    height = _height_between(scene, hand.position, point, name) + below
    yield from come_out(scene, name)
    yield from rise(scene, height, CLOSED)

    end = Pose(point - rotation @ grip, rotation)
    over = Pose(np.array([*end.position[:2], max(height, end.position[2])]), rotation)
    yield from move(scene, over, CLOSED, near=0.012, turned=0.08)
    others = scene.obstacles(name)

    def stopped() -> bool:
        return scene.touches(name, hand=False) or min(room(others, scene.hand(), WIDE)) < 0.006

    yield from move(scene, end, CLOSED, near=0.004, speed=0.5, until=stopped)
    yield from stay(scene, CLOSED, 2)
    yield from stay(scene, OPEN, 6)
    yield from rise(scene, scene.hand().position[2] + 0.08, OPEN)


def come_out(scene: LiberoScene, name: str) -> Skill:
    """Move a held object out from under whatever is above it."""
    corners, others = scene.boxes(name).corners(), scene.obstacles(name)
    low, high = corners.min(axis=0), corners.max(axis=0)
    low[2], high[2] = low[2] + 0.02, high[2] + 0.22
    # Dense enough to hit the thin walls of hollow objects.
    axes = [np.linspace(a, b, 9) for a, b in zip(low, high, strict=True)]
    column = np.array(np.meshgrid(*axes)).reshape(3, -1).T
    if others.distance(column) > 0.008:
        return
    ways = [
        far * np.array([np.cos(turn), np.sin(turn), 0.0])
        for far in (0.03, 0.04, 0.05, 0.06, 0.08)
        for turn in np.arange(0.0, 2 * np.pi, np.pi / 8)
    ]
    way = max(ways, key=lambda way: min(0.008, others.distance(column + way)))
    up = scene.hand().moved((0.0, 0.0, 0.01))
    yield from move(scene, up, CLOSED, near=0.004, patience=10)
    yield from move(scene, up.moved(way), CLOSED, near=0.015)


def push(scene: LiberoScene, name: str, point: Array) -> Skill:
    """Push an object across the table to a point, with open fingers on both sides of its back.

    The hand leans over the object, so there may be a wall close behind it.
    """
    corners = scene.boxes(name).corners()
    radius, table = np.ptp(corners[:, :2], axis=0).max() / 2, corners[:, 2].min()

    def behind(gap: float, height: float) -> Pose:
        centre = scene.pose(name).position
        way = np.array([*(point - centre)[:2], 0.0])
        way /= np.linalg.norm(way)
        rotation = facing(np.cos(_LEAN) * DOWN - np.sin(_LEAN) * way, np.cross(way, DOWN))
        back = centre - (radius + gap) * way
        at = np.array([back[0], back[1], table + height])
        return Pose(at, nearest_turn(rotation, scene.hand().rotation))

    def left() -> float:
        return float(np.linalg.norm((point - scene.pose(name).position)[:2]))

    start = behind(0.03, 0.014)
    over = start.moved(-0.12 * start.rotation[:, 2])
    yield from move(scene, over, OPEN, near=0.02, turned=0.15, patience=120)
    yield from move(scene, start, OPEN, near=0.012, until=is_blocked(scene, start))
    stuck = is_stuck(left, 12)
    while left() > 0.02 and not stuck():
        # Aim below the table, so that the fingers stay down and do not climb onto the object.
        yield HandCommand(behind(-0.04, 0.0), OPEN, 0.7)
    yield from rise(scene, scene.hand().position[2] + 0.08, OPEN)


def rise(scene: LiberoScene, height: float, fingers: float) -> Skill:
    """Go straight up to a height, if the hand is lower."""
    hand = scene.hand()
    if hand.position[2] < height:
        target = Pose(np.array([*hand.position[:2], height]), hand.rotation)
        yield from move(scene, target, fingers, near=0.02)


def _raised(scene: LiberoScene, pose: Pose) -> Pose:
    height = max(pose.position[2], scene.hand().position[2])
    return Pose(np.array([*pose.position[:2], height]), pose.rotation)


def _height_between(scene: LiberoScene, start: Array, end: Array, *but: str) -> float:
    """Return a height above everything near the path from start to end."""
    corners = scene.obstacles(*but).corners()
    way = end[:2] - start[:2]
    along = np.clip((corners[:, :2] - start[:2]) @ way / max(way @ way, 1e-9), 0.0, 1.0)
    aside = np.linalg.norm(corners[:, :2] - start[:2] - along[:, None] * way, axis=1)
    return float(corners[aside < 0.15, 2].max(initial=-np.inf)) + _MARGIN
