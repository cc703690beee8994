"""The user's controls: commands, disturbances, and what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import viser

from prism_motor.viewer.controls import Click, DisturbControls, ViewControls
from prism_motor.viewer.walking.session import Command, Session

if TYPE_CHECKING:
    from prism_motor.locomotion.task import CommandConfig, Range

_KEYS = {
    "I": ("Faster", 0, 0.1), "K": ("Slower", 0, -0.1), "J": ("Turn left", 2, 0.1),
    "L": ("Turn right", 2, -0.1), "U": ("More to the left", 1, 0.05),
    "O": ("More to the right", 1, -0.05),
}  # fmt: skip
"""Keys that steer: what each does, which part of the command it changes, and by how much. W, A, S
and D and the arrows move the camera."""
_BEYOND = 0.25
"""Share of the trained range by which sliders go beyond it on either side."""


@dataclass(frozen=True)
class WalkingControls:
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


class WalkingPanel:
    """The controls on the right of the browser window.

    Args:
        gui: The GUI of the browser's server.
        session: What is controlled; gives ranges and first values.
    """

    def __init__(self, gui: viser.GuiApi, session: Session) -> None:
        self._choices = _choices(session)
        self._gui = gui
        self.status = gui.add_html("")
        self._robots: Any = None
        if len(self._choices) > 1:
            self._robots = gui.add_dropdown(
                "Policy", tuple(self._choices), initial_value=next(reversed(self._choices))
            )
        self._add_command(session)
        self.disturb = DisturbControls(gui, session.walkers[0].mass, session.friction)
        self.view = ViewControls(gui)

    def read(self) -> WalkingControls:
        """Return the current values."""
        by_hand = not self._own.value
        command = (self._forward.value, self._sideways.value, self._turn.value)
        name = self._robots.value if self._robots else next(iter(self._choices))
        return WalkingControls(
            command=command if by_hand else None,
            friction=self.disturb.friction.value,
            payload=self.disturb.payload.value,
            shown=self._choices[name],
            paused=self.view.paused.value,
            speed=self.view.speed.value,
            follow=self.view.follow.value,
        )

    def take_clicks(self) -> list[Click]:
        """Return the clicks since the last call, as functions to apply to the session."""
        return [*self.disturb.clicks.take(), *self.view.clicks.take()]

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
            stop = self._gui.add_button(
                "Stop (X)", icon=viser.Icon.HAND_STOP,
                hint="Commands a velocity of zero; the robot keeps stepping on the spot.",
            )  # fmt: skip
            self._gui.add_markdown("Keys: **I K** faster, slower; **J L** turn; **U O** sideways.")
        sliders = (self._forward, self._sideways, self._turn)
        self._add_keys(sliders)

        @self._own.on_update
        def _(_: object) -> None:
            for slider in sliders:
                slider.disabled = self._own.value

        @stop.on_click
        def _(_: object) -> None:
            self._steer(sliders, None)

    def _add_keys(self, sliders: Sequence[Any]) -> None:
        for key, (label, part, change) in _KEYS.items():
            command = self._gui.add_command(label, hotkey=key)  # type: ignore[arg-type]
            command.on_trigger(partial(self._steer, sliders, (part, change)))
        self._gui.add_command("Stop", hotkey="X").on_trigger(partial(self._steer, sliders, None))

    def _steer(self, sliders: Sequence[Any], change: tuple[int, float] | None, *_: object) -> None:
        """Take over from the task, and change a part of the command; ``None``: stop."""
        self._own.value = False
        if change is None:
            for slider in sliders:
                slider.value = 0.0
        else:
            part, more = change
            slider = sliders[part]
            slider.value = min(max(round(slider.value + more, 2), slider.min), slider.max)

    def _slider(self, name: str, bounds: Range, value: float) -> Any:
        low, high = min(bounds[0], value), max(bounds[1], value)
        return self._gui.add_slider(name, low, high, 0.01, value)


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
