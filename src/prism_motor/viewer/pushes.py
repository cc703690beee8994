"""What befalls a robot: pushes with their outcome, and physics that diverges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SURVIVED = 3.0
"""A robot that stands this long after a push has survived it, s."""

DIRECTIONS = {"forward": (1.0, 0.0), "back": (-1.0, 0.0), "left": (0.0, 1.0), "right": (0.0, -1.0)}
"""Where a push sends the robot, in its own axes."""


@dataclass
class Push:
    """A push and its outcome."""

    direction: str
    """One of :data:`DIRECTIONS`."""
    speed: float
    """Velocity that it added, m/s."""
    time: float
    """When, on the robot's clock, s."""
    fell_after: float | None = None
    """Time to the fall, s; ``None`` if there was none."""
    survived: bool = False
    """Whether the robot was still standing :data:`SURVIVED` seconds later."""

    def judge(self, time: float, fallen: bool) -> None:
        """Note the outcome, once there is one."""
        if self.fell_after is None and not self.survived:
            if fallen:
                self.fell_after = time - self.time
            self.survived = time - self.time >= SURVIVED

    def __str__(self) -> str:
        outcome = "…"
        if self.fell_after is not None:
            outcome = f"fell after {self.fell_after:.1f} s"
        elif self.survived:
            outcome = "survived"
        return f"push {self.direction} {self.speed:.2f} m/s: {outcome}"


def describe_divergence(times: int) -> str:
    """Say that the physics of a robot diverged; empty if it never did."""
    if not times:
        return ""
    often = "once" if times == 1 else f"{times} times"
    return f"its physics diverged {often}; it was put back on its feet"


def added_velocity(direction: str, speed: float, yaw: float) -> np.ndarray:
    """Return the velocity (2,) that a push adds to a robot that faces a yaw, in world axes."""
    x, y = DIRECTIONS[direction]
    cosine, sine = np.cos(yaw), np.sin(yaw)
    return speed * np.array([x * cosine - y * sine, x * sine + y * cosine])
