"""Scripted leaders: they move the arm as a person does who watches it.

A leader is a script of places for the tip, written as a generator: one pose of the leader arm per
frame. What makes it human is the same for all tasks: every episode has its own speed, motions have
minimum jerk, the hand aims a little beside the target, the arm that is held has 0.3 degrees of play
and what the follower does comes one to three frames later.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError
from prism_motor.sim.so101.kinematics import (
    PAN_AXIS,
    against_gravity,
    forward,
    gravity_torques,
    inverse,
)
from prism_motor.sim.so101.scenes.cube import HALF, ZONE_RADIUS
from prism_motor.sim.so101.twin import HOME, Twin
from prism_motor.sim.so101.units import ACTION_HIGH, ACTION_LOW, to_lerobot, to_radians

Array = NDArray[np.float64]

SPEEDS = (0.6, 1.2)
"""Slowest and fastest episode, relative to the nominal one."""

LAGS = (1, 3)
"""Fewest and most frames between leader and follower."""

PLAY = 0.3
"""Steps in which the leader's angles are read, degrees and percent."""

_LEADER = 16_103
"""Random stream."""

FASTEST = 0.05
"""Largest change of a joint per frame at the highest speed, rad."""

_NEAR = 0.003
"""Distance to a surface at which a hand slows down, m."""

RAISING = 0.0045
"""Nominal change of height per frame after pressing, m."""


class Leader(ABC):
    """Shows a task; one of :data:`LEADERS` per task.

    Args:
        twin: Where it acts; it knows where things are.

    Attributes:
        done: Whether the script has ended; the arm is back at home then.
    """

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Begin an episode, after a reset of the twin.

        Args:
            seed: What its speed, aim and lag depend on; default: the twin's seed.
        """
        chosen = self.twin.seed if seed is None else seed
        self.random = np.random.default_rng([_LEADER, chosen])
        self.speed = float(self.random.uniform(*SPEEDS))
        self.lag = int(self.random.integers(LAGS[0], LAGS[1] + 1))
        # Where the arm really rests: it sags below what it is told.
        told = to_radians(HOME)
        self._home = told - gravity_torques(told) / self.twin.servos.kp
        self._held = self._home
        self._late: deque[Array] = deque([HOME.copy()] * self.lag)
        self._script = self.script()
        self.done = False

    @abstractmethod
    def script(self) -> Iterator[Array]:
        """Yield the joint angles (6, rad) of every frame, as they would be without gravity."""

    def act(self) -> Array:
        """Return the next targets in LeRobot's units (6); after the script, those of home."""
        if not self.done:
            following = next(self._script, None)
            self.done = following is None and len(self._late) == 0
            if following is not None:
                self._held = following
                self._late.append(self._read(following))
        return self._late.popleft() if self._late else HOME.copy()

    def _read(self, angles: Array) -> Array:
        """Turn a pose into targets: raised against gravity, as an eye on the tip does it."""
        raised = against_gravity(angles, self.twin.servos.kp)
        read = PLAY * np.rint(to_lerobot(raised) / PLAY)
        return np.clip(read, ACTION_LOW, ACTION_HIGH)

    def _move(self, goal: Array) -> Iterator[Array]:
        """Move all joints to a goal with minimum jerk."""
        start, way = self._held, goal - self._held
        fastest = FASTEST * self.speed / SPEEDS[1]
        for share in _minimum_jerk(np.abs(way).max() / fastest):
            yield start + share * way

    def _aim(self, spread: float) -> Array:
        """Return by how much the hand aims beside a target, m (3)."""
        beside = np.clip(self.random.normal(0.0, spread, 2), -2 * spread, 2 * spread)
        return np.array([*beside, 0.0])


def _minimum_jerk(frames: float) -> Iterator[float]:
    """Yield the shares of a way after every frame; no step is longer than a frame's."""
    count = max(4, math.ceil(1.875 * frames))  # its largest speed is 1.875 times the mean
    for number in range(1, count + 1):
        s = number / count
        yield s**3 * (10 - 15 * s + 6 * s**2)


def _turned(tip: Array, pitch: float, direction: float) -> Array:
    """Return joint angles with the front of the upright gripper in a direction, rad."""
    heading = math.atan2(tip[1], tip[0] - PAN_AXIS)
    return inverse(tip, pitch, roll=float(np.clip(direction - heading, -1.5, 1.5)))


class PressingLeader(Leader):
    """Goes over a button, lowers the tip until it closes, waits, and goes back."""

    pitch: ClassVar[float] = 1.1
    """How far the gripper points down, rad."""
    above: ClassVar[float] = 0.045
    """Height over the button from which it is lowered, m."""
    lowering: ClassVar[float] = 0.0015
    """Change of height per frame at the nominal speed, m."""
    touch: ClassVar[float] = 1.0
    """Share of that change once the tip is near the surface."""
    spread: ClassVar[float] = 0.002
    """Standard deviation of the aim, m."""
    attempts: ClassVar[int] = 3
    deepest: ClassVar[float] = 0.02
    """How far below the surface it tries before it aims again, m."""

    def script(self) -> Iterator[Array]:
        """Press until the button closed, up to three times; then go home."""
        for _ in range(self.attempts):
            aim = self.twin.target + self._aim(self.spread)
            over = aim + np.array([0.0, 0.0, self.above])
            yield from self._move(self._pose(over))
            yield from self._lower(over)
            for _ in range(5 * self.twin.outcome.pressed):
                yield self._held
            yield from self._raise(over)
            if self.twin.outcome.pressed:
                break
        yield from self._move(self._home)

    def _lower(self, over: Array) -> Iterator[Array]:
        tip, surface = over.copy(), over[2] - self.above
        while not self.twin.outcome.pressed and tip[2] > surface - self.deepest:
            share = self.touch if tip[2] < surface + _NEAR else 1.0
            tip[2] -= share * self.lowering * self.speed
            yield self._pose(tip)

    def _raise(self, over: Array) -> Iterator[Array]:
        start = forward(self._held).position
        for share in _minimum_jerk((over[2] - start[2]) / (RAISING * self.speed)):
            yield self._pose(start + share * (over - start))

    def _pose(self, tip: Array) -> Array:
        return inverse(tip, self.pitch)


class KeyLeader(PressingLeader):
    """Presses a key with the gripper upright and turned as the keyboard is.

    The jaw is as broad as a key: otherwise its edge would press a neighbour.
    """

    pitch = 1.55
    above = 0.02
    lowering = 0.0012
    touch = 0.3
    spread = 0.0008

    def _pose(self, tip: Array) -> Array:
        return _turned(tip, self.pitch, self.twin.pose.yaw)


class PushingLeader(Leader):
    """Goes behind the cube, pushes it towards the zone with its eye on it, and goes back."""

    pitch: ClassVar[float] = 1.3
    """How far the gripper points down, rad."""
    behind: ClassVar[float] = 0.04
    """Distance of the tip to the cube's middle before pushing, m."""
    low: ClassVar[float] = 0.012
    high: ClassVar[float] = 0.05
    """Heights of the tip while pushing and while going somewhere, m."""
    attempts: ClassVar[int] = 3

    def script(self) -> Iterator[Array]:
        """Push, up to three times if the cube slips away; then go home."""
        for _ in range(self.attempts):
            way = self._way()
            start = self.twin.thing[:2] - self.behind * way + self._aim(0.002)[:2]
            yield from self._move(self._pose(start, self.high, way))
            yield from self._glide(start, start, (self.high, self.low), way)
            tip = start
            for tip in self._push(start):
                yield self._pose(tip, self.low, way)
            back = tip - 0.02 * way
            yield from self._glide(tip, back, (self.low, self.low), way)
            yield from self._glide(back, back, (self.low, self.high), way)
            if self._left() < ZONE_RADIUS / 2:
                break
        yield from self._move(self._home)

    def _left(self) -> float:
        """Return how far the cube still has to go, m."""
        return float(np.linalg.norm(self.twin.target[:2] - self.twin.thing[:2]))

    def _way(self) -> Array:
        """Return the direction in which the cube has to go."""
        return (self.twin.target[:2] - self.twin.thing[:2]) / max(self._left(), 1e-6)

    def _pose(self, place: Array, height: float, way: Array) -> Array:
        """Return joint angles with the broad side of the jaw across the way."""
        direction = math.atan2(way[1], way[0])
        return _turned(np.array([*place, height]), self.pitch, direction)

    def _glide(
        self, start: Array, goal: Array, heights: tuple[float, float], way: Array
    ) -> Iterator[Array]:
        """Move the tip along a line with minimum jerk."""
        first, last = (np.array([*p, h]) for p, h in zip((start, goal), heights, strict=True))
        length = float(np.linalg.norm(last - first))
        for share in _minimum_jerk(length / (0.004 * self.speed)):
            place = first + share * (last - first)
            yield self._pose(place[:2], place[2], way)

    def _push(self, tip: Array) -> Iterator[Array]:
        """Yield places of the tip, at the side of the cube that is away from the zone.

        They end when the cube is there, or slipped.
        """
        while self._left() > HALF:
            way = self._way()
            across = np.array([-way[1], way[0]])
            ahead = self.twin.thing[:2] - tip
            if ahead @ way < 0 or abs(ahead @ across) > 2 * HALF:
                return
            # Stay on the line through the cube and the zone while going forward.
            side = float(np.clip(0.3 * (ahead @ across), -0.002, 0.002))
            tip = tip + 0.003 * self.speed * way + side * across
            yield tip


LEADERS: dict[str, type[Leader]] = {
    "mouse-click-v0": PressingLeader,
    "press-key-v0": KeyLeader,
    "push-cube-v0": PushingLeader,
}
"""Leaders by the name of their task."""


def make_leader(twin: Twin) -> Leader:
    """Return the scripted leader of a twin's task."""
    if twin.scene.name not in LEADERS:
        raise InputError(f"There is no scripted leader for {twin.scene.name}.")
    return LEADERS[twin.scene.name](twin)
