"""The operator's controls: the tip, the keys and the episodes."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import viser

from prism_motor.viewer.controls import Click, Clicks

if TYPE_CHECKING:
    from prism_motor.viewer.teleop.session import TeleopSession

STEP = 0.004
"""How far a key moves the target, m."""

_Key = Literal["I", "K", "J", "L", "O", "U"]
STEPS: dict[_Key, tuple[str, tuple[float, float, float]]] = {
    "I": ("forward", (STEP, 0.0, 0.0)),
    "K": ("back", (-STEP, 0.0, 0.0)),
    "J": ("left", (0.0, STEP, 0.0)),
    "L": ("right", (0.0, -STEP, 0.0)),
    "O": ("up", (0.0, 0.0, STEP)),
    "U": ("down", (0.0, 0.0, -STEP)),
}
"""Keys, what they are called, and by how much they move the target; viser itself moves the camera
with W, A, S, D, Q and E, and cannot be told otherwise."""


class TeleopPanel:
    """The controls on the right of the browser window.

    Keys and buttons wait in a queue until the loop takes them; sliders are read by it.

    Args:
        gui: The GUI of the browser's server.
        session: What is controlled; gives first values.
    """

    def __init__(self, gui: viser.GuiApi, session: TeleopSession) -> None:
        self._gui, self._clicks = gui, Clicks()
        self.status = gui.add_html("")
        self._add_episodes()
        self._add_tip(session)
        self._add_keys()

    def _add_episodes(self) -> None:
        icons = viser.Icon
        with self._gui.add_folder("Episode"):
            self.start = self._button(
                "Start episode", icons.PLAYER_RECORD, lambda session: session.start()
            )
            self.keep = self._button("Stop and keep", icons.CHECK, lambda session: session.keep())
            self.discard = self._button("Discard", icons.TRASH, lambda session: session.discard())
            self.again = self._button(
                "Re-record", icons.REPEAT, lambda session: session.record_again()
            )
            self.undo = self._button(
                "Undo last", icons.ARROW_BACK_UP, lambda session: session.undo()
            )
            self.next = self._button(
                "Next placement", icons.ARROWS_SHUFFLE, lambda session: session.next_placement()
            )

    def _add_tip(self, session: TeleopSession) -> None:
        gui, target = self._gui, session.target
        with gui.add_folder("Tip"):
            ways = {f"{name} {key}": way for key, (name, way) in STEPS.items()}
            self.moves = gui.add_button_group(f"{1000 * STEP:.0f} mm", tuple(ways))
            self.press = self._button(
                "Press (space)", viser.Icon.HAND_CLICK, lambda session: session.press()
            )
            self.home = self._button("Home (H)", viser.Icon.HOME, lambda session: session.home())
            self.pitch = gui.add_slider(
                "Pitch, deg", -20, 120, 1, round(math.degrees(target.pitch)),
                hint="How far the gripper points down; 90: straight down.",
            )  # fmt: skip
            self.roll = gui.add_slider(
                "Wrist roll, deg", -90, 90, 1, round(math.degrees(target.roll))
            )
            self.gripper = gui.add_slider(
                "Gripper, %", 0, 100, 1, round(target.opening), hint="0: closed."
            )
        self._sliders: dict[str, tuple[Any, float]] = {
            "pitch": (self.pitch, math.degrees(1)),
            "roll": (self.roll, math.degrees(1)),
            "opening": (self.gripper, 1.0),
        }
        self._shown = {name: slider.value for name, (slider, _) in self._sliders.items()}

        @self.moves.on_click
        def _(_: object) -> None:
            self._clicks.add(partial(_nudge, way=ways[self.moves.value]))

    def _add_keys(self) -> None:
        for key, (name, way) in STEPS.items():
            self._key(key, f"Tip {name}", partial(_nudge, way=way))
        self._key("space", "Press", lambda session: session.press())
        self._key("H", "Home", lambda session: session.home())

    def _key(self, key: Any, label: str, click: Click) -> None:
        command = self._gui.add_command(label, hotkey=key)
        command.on_trigger(lambda _: self._clicks.add(click))

    def _button(self, label: str, icon: Any, click: Click) -> viser.GuiButtonHandle:
        button = self._gui.add_button(label, icon=icon)
        button.on_click(lambda _: self._clicks.add(click))
        return button

    def take_clicks(self) -> list[Click]:
        """Return the clicks and keys since the last call, as functions to apply to the session."""
        return self._clicks.take()

    def take_changes(self) -> dict[str, float]:
        """Return the fields of the target whose sliders were moved since the last call."""
        changes = {}
        for name, (slider, scale) in self._sliders.items():
            if slider.value != self._shown[name]:
                self._shown[name] = slider.value
                changes[name] = slider.value / scale
        return changes

    def show(self, session: TeleopSession) -> None:
        """Show the target, and which buttons can be pressed."""
        for name, (slider, scale) in self._sliders.items():
            value = round(getattr(session.target, name) * scale)
            if value != slider.value and slider.value == self._shown[name]:
                slider.value = self._shown[name] = value
        recording, kept = session.recording, len(session.kept)
        for button, usable in (
            (self.start, not recording and kept < session.episodes),
            (self.keep, recording),
            (self.discard, recording),
            (self.again, recording or kept > 0),
            (self.undo, not recording and kept > 0),
            (self.next, not recording),
        ):
            if button.disabled == usable:
                button.disabled = not usable


def _nudge(session: TeleopSession, way: tuple[float, float, float]) -> None:
    session.nudge(*way)
