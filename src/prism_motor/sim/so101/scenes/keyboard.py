"""A small keyboard whose keys are sprung."""

from __future__ import annotations

from typing import Any

from prism_motor.sim.so101.button import Button, add_button
from prism_motor.sim.so101.outcome import ButtonWatcher, Watcher
from prism_motor.sim.so101.placement import PlacementRange
from prism_motor.sim.so101.scenes.scene import Array, Scene, add_box, add_thing_body

ROWS = ("qwert", "asdfg", "zxcvb")
"""Keys from the far row to the near one, each from left to right."""

KEY = "d"
"""The key to press; it is in the middle, with neighbours on all sides."""

PITCH = 0.019
"""Distance between keys, m."""

MOST_DISPLACEMENT = 0.02
"""A press that moved the keyboard this far does not count, m."""

_BASE = (0.034, 0.053, 0.007)
_CAP = (0.008, 0.008, 0.003)
_LIFT = 0.0125
_BODY, _PLAIN, _WANTED = (0.16, 0.17, 0.2, 1.0), (0.82, 0.83, 0.84, 1.0), (0.1, 0.42, 0.72, 1.0)


class PressKey(Scene):
    """Press and release one key and none of its neighbours.

    Args:
        button: Every key.
    """

    name = "press-key-v0"
    instruction = "Press the D key"
    body = "keyboard"
    narrow = PlacementRange((0.2, 0.23), 0.03, 0.12)
    wide = PlacementRange((0.19, 0.24), 0.05, 0.25)
    height = _BASE[2]

    def __init__(self, button: Button | None = None) -> None:
        self.button = button or Button(threshold=0.001, release=0.0005, travel=0.002)

    def add_thing(self, spec: Any) -> None:
        """Add the keyboard: 15 keys on a base that stands on rubber feet."""
        keyboard = add_thing_body(spec, self.body, self.height)
        add_box(keyboard, (0, 0, 0), _BASE, _BODY, mass=0.3, friction=0.9, priority=1)
        for row, names in enumerate(ROWS):
            for column, key in enumerate(names):
                place = (PITCH * (1 - row), PITCH * (2 - column), _LIFT)
                colour = _WANTED if key == KEY else _PLAIN
                add_button(keyboard, _joint(key), place, _CAP, self.button, colour)

    def watcher(self, model: Any) -> Watcher:
        """Return what counts presses of all keys."""
        keys = [_joint(key) for key in "".join(ROWS)]
        return ButtonWatcher(model, self.body, keys, _joint(KEY), self.button, MOST_DISPLACEMENT)

    def target(self, data: Any) -> Array:
        """Return the middle of the key's surface."""
        body = data.body(_joint(KEY))
        return body.xpos + body.xmat.reshape(3, 3)[:, 2] * _CAP[2]


def _joint(key: str) -> str:
    return f"key_{key}"
