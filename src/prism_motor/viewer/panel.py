"""The user's controls: commands, disturbances, and what is shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import viser

from prism_motor.viewer.session import Command, Session
from prism_motor.viewer.walker import DIRECTIONS

if TYPE_CHECKING:
    from prism_motor.locomotion.task import CommandConfig, Range

_SPEEDS = (0.1, 2.0)
_CLICKS = 8
"""Clicks kept between two images; more than that at once is a flood, of which the oldest go."""
_BEYOND = 0.25
"""Share of the trained range by which sliders go beyond it on either side."""


@dataclass(frozen=True)
class Controls:
    """Values of the sliders and boxes."""

    command: Command | None
    """The user's command; ``None`` for the task's own."""
    friction: float
    """Sliding friction."""
    payload: float
    """Mass on the base, kg."""
    shown: tuple[int, ...]
    """Walkers that walk."""
    paused: bool
    """Whether the simulation is paused."""
    speed: float
    """Simulated seconds per second."""
    follow: bool
    """Whether the view follows the robots."""


class Panel:
    """The controls on the right of the browser window.

    Sliders are read by the loop; clicks wait in a queue until the loop takes them, so that only one
    thread touches the simulation. Clients reach the controls through
    :mod:`prism_motor.viewer.messages`, so their values are always allowed ones.

    Args:
        gui: The GUI of the browser's server.
        session: What is controlled; gives ranges and first values.
    """

    def __init__(self, gui: viser.GuiApi, session: Session) -> None:
        self._clicks: deque[Callable[[Session], None]] = deque(maxlen=_CLICKS)
        self._choices = _choices(session)
        self._gui = gui
        self.status = gui.add_html("")
        self._robots: Any = None
        if len(self._choices) > 1:
            self._robots = gui.add_dropdown(
                "Policy", tuple(self._choices), initial_value=next(reversed(self._choices))
            )
        self._add_command(session)
        self._add_disturbances(session)
        self._add_view()

    def read(self) -> Controls:
        """Return the current values."""
        by_hand = not self._own.value
        command = (self._forward.value, self._sideways.value, self._turn.value)
        name = self._robots.value if self._robots else next(iter(self._choices))
        return Controls(
            command=command if by_hand else None,
            friction=self._friction.value,
            payload=self._payload.value,
            shown=self._choices[name],
            paused=self._paused.value,
            speed=self._speed.value,
            follow=self._follow.value,
        )

    def take_clicks(self) -> list[Callable[[Session], None]]:
        """Return the clicks since the last call, as functions to apply to the session."""
        return [self._clicks.popleft() for _ in range(len(self._clicks))]

    def _add_command(self, session: Session) -> None:
        trained = session.walkers[0].task.commands
        start = session.command or (0.0, 0.0, 0.0)
        with self._gui.add_folder("Command"):
            self._own = self._gui.add_checkbox(
                "Follow the task", session.command is None,
                hint=f"Commands as in training: new ones every {trained.resample_after:g} s.",
            )  # fmt: skip
            self._forward, self._sideways, self._turn = (
                self._slider(name, bounds, value)
                for (name, bounds), value in zip(_ranges(trained).items(), start, strict=True)
            )
            stop = self._gui.add_button("Stop", icon=viser.Icon.HAND_STOP)
        sliders = (self._forward, self._sideways, self._turn)

        @self._own.on_update
        def _(_: object) -> None:
            for slider in sliders:
                slider.disabled = self._own.value

        @stop.on_click
        def _(_: object) -> None:
            self._own.value = False
            for slider in sliders:
                slider.value = 0.0

    def _slider(self, name: str, bounds: Range, value: float) -> Any:
        low, high = min(bounds[0], value), max(bounds[1], value)
        return self._gui.add_slider(name, low, high, 0.01, value)

    def _add_disturbances(self, session: Session) -> None:
        mass = session.walkers[0].mass
        with self._gui.add_folder("Disturb"):
            pushes = self._gui.add_button_group("Push", tuple(DIRECTIONS))
            strength = self._gui.add_slider(
                "Strength, m/s", 0.1, 1.5, 0.05, 0.5,
                hint=f"Velocity that a push adds to the robot; times {mass:.0f} kg, its impulse.",
            )  # fmt: skip
            self._friction = self._gui.add_slider("Friction", 0.05, 1.5, 0.005, session.friction)
            self._payload = self._gui.add_slider("Payload, kg", 0.0, round(mass / 3, 1), 0.1, 0.0)

        @pushes.on_click
        def _(_: object) -> None:
            direction, speed = pushes.value, strength.value
            self._clicks.append(lambda session: session.push(direction, speed))

    def _add_view(self) -> None:
        with self._gui.add_folder("Simulation"):
            self._speed = self._gui.add_slider("Speed", *_SPEEDS, 0.1, 1.0)
            self._paused = self._gui.add_checkbox("Pause", False)
            self._follow = self._gui.add_checkbox("Camera follows", True)
            restart = self._gui.add_button("Reset", icon=viser.Icon.REFRESH)

        @restart.on_click
        def _(_: object) -> None:
            self._clicks.append(Session.restart)


def _choices(session: Session) -> dict[str, tuple[int, ...]]:
    """Return who can be shown, by label: each walker alone, then all side by side."""
    everyone = tuple(range(len(session.walkers)))
    choices = {walker.name: (i,) for i, walker in zip(everyone, session.walkers, strict=True)}
    return choices | ({"side by side": everyone} if len(everyone) > 1 else {})


def _ranges(trained: CommandConfig) -> dict[str, Range]:
    turn = (-trained.turn_limit, trained.turn_limit)

    def wider(bounds: Range) -> Range:
        more = _BEYOND * (bounds[1] - bounds[0])
        return round(bounds[0] - more, 2), round(bounds[1] + more, 2)

    return {
        "Forward, m/s": wider(trained.forward),
        "Left, m/s": wider(trained.sideways),
        "Turn, rad/s": turn,
    }
