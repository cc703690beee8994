"""Controls that every show has: disturbances, and how time passes.

Sliders are read by the loop; clicks wait in a queue until the loop takes them, so that only one
thread touches the simulation. Clients reach the controls through
:mod:`prism_motor.viewer.messages`, so their values are always allowed ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import viser

from prism_motor.viewer.pushes import DIRECTIONS

_SPEEDS = (0.1, 2.0)
_CLICKS = 8
"""Clicks kept between two images; more than that at once is a flood, of which the oldest go."""


Click = Callable[[Any], None]
"""What a click does to a session, which has the methods ``push`` and ``restart``."""


class Clicks:
    """Clicks that wait for the loop."""

    def __init__(self) -> None:
        self._waiting: deque[Click] = deque(maxlen=_CLICKS)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, click: Click) -> None:
        """Add a click; the oldest give way."""
        self._waiting.append(click)

    def take(self) -> list[Click]:
        """Return the clicks since the last call."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]


class DisturbControls:
    """Pushes, friction and payload.

    Args:
        gui: Where they go.
        mass: Mass of the robot, kg.
        friction: Sliding friction at first.
    """

    def __init__(self, gui: viser.GuiApi, mass: float, friction: float) -> None:
        self.clicks = Clicks()
        with gui.add_folder("Disturb"):
            pushes = gui.add_button_group("Push", tuple(DIRECTIONS))
            strength = gui.add_slider(
                "Strength, m/s", 0.1, 1.5, 0.05, 0.5,
                hint=f"Velocity that a push adds to the robot; times {mass:.0f} kg, its impulse.",
            )  # fmt: skip
            self.friction = gui.add_slider("Friction", 0.05, 1.5, 0.005, friction)
            self.payload = gui.add_slider("Payload, kg", 0.0, round(mass / 3, 1), 0.1, 0.0)

        @pushes.on_click
        def _(_: object) -> None:
            direction, speed = pushes.value, strength.value
            self.clicks.add(lambda session: session.push(direction, speed))


class ViewControls:
    """Speed, pause, camera and reset.

    Args:
        gui: Where they go.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self.clicks = Clicks()
        with gui.add_folder("Simulation"):
            self.speed = gui.add_slider("Speed", *_SPEEDS, 0.1, 1.0)
            self.paused = gui.add_checkbox("Pause", False)
            self.follow = gui.add_checkbox("Camera follows", True)
            restart = gui.add_button("Reset", icon=viser.Icon.REFRESH)

        @restart.on_click
        def _(_: object) -> None:
            self.clicks.add(lambda session: session.restart())
