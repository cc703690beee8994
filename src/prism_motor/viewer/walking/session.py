"""Walkers watched together: one clock, one command, one world for all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prism_motor._checks import InputError

if TYPE_CHECKING:
    from prism_motor.viewer.walking.walker import Walker

Command = tuple[float, float, float]
"""Forward and sideways velocity (m/s) and yaw rate (rad/s)."""


class Session:
    """One or two policies under the same command; independent of any browser.

    Args:
        walkers: One per policy.
        command: Their first command; ``None`` for the task's own commands.

    Attributes:
        shown: Indices of the walkers that walk now; the first one leads.
        friction: Sliding friction of the ground.
        payload: Mass added to the base, kg.
        time: Simulated time, s.
    """

    def __init__(self, walkers: Sequence[Walker], command: Command | None) -> None:
        if not walkers:
            raise InputError("A session needs at least one policy to watch.")
        self.walkers = tuple(walkers)
        self.shown = tuple(range(len(self.walkers)))
        self.time = 0.0
        self._restarts = 0
        self.tell(command)
        self.change(friction=self.walkers[0].friction, payload=0.0)

    @property
    def leader(self) -> Walker:
        """The walker that the others follow when the task draws the commands."""
        return self.walkers[self.shown[0]]

    @property
    def walking(self) -> list[Walker]:
        """The walkers that walk now."""
        return [self.walkers[i] for i in self.shown]

    def advance(self, seconds: float) -> None:
        """Advance time; every walker is simulated to the end of its current control step."""
        self.time += seconds
        for walker in self.walking:
            if self.command is None and walker is not self.leader:
                walker.tell(tuple(self.leader.command.tolist()))
            while walker.time < self.time:
                walker.step()

    def show(self, *which: int) -> None:
        """Choose who walks; newcomers continue from the leader's state."""
        leader = self.leader
        newcomers = [i for i in which if i not in self.shown]
        self.shown = which
        for i in newcomers:
            self.walkers[i].take_over(leader)
        self.tell(self.command)
        self.change(friction=self.friction, payload=self.payload)

    def tell(self, command: Command | None) -> None:
        """Give all walkers the same command; ``None`` for those that the leader's task draws."""
        if command is not None and not all(map(math.isfinite, command)):
            raise InputError(f"A command is three numbers, got {command}.")
        self.command = command
        for walker in self.walking:
            if command is not None or walker is self.leader:
                walker.tell(command)

    def change(self, *, friction: float, payload: float) -> None:
        """Change the ground friction and the load on the robots' base, kg."""
        self.friction, self.payload = friction, payload
        for walker in self.walking:
            walker.change(friction=friction, payload=payload)

    def push(self, direction: str, speed: float) -> None:
        """Push all walkers alike; see :meth:`prism_motor.viewer.walking.walker.Walker.push`."""
        for walker in self.walking:
            walker.push(direction, speed)

    def restart(self) -> None:
        """Return all walkers to the origin in a new initial state, the same for equal tasks."""
        self._restarts += 1
        for walker in self.walking:
            walker.restart(walker.seed + self._restarts)
            walker.time = self.time
