"""A computer mouse whose left button is sprung."""

from __future__ import annotations

from typing import Any

from prism_motor.sim.so101.button import Button, add_button
from prism_motor.sim.so101.outcome import ButtonWatcher, Watcher
from prism_motor.sim.so101.placement import PlacementRange
from prism_motor.sim.so101.scenes.scene import Array, Scene, add_box, add_thing_body

FRICTION = 0.35
"""Between mouse and table: it slides away when it is pushed from the side."""

MOST_DISPLACEMENT = 0.02
"""A click that moved the mouse this far does not count, m."""

_BUTTON = "left_button"
_HALF = (0.0175, 0.014, 0.002)
_BODY, _PLATE, _LEFT = (0.12, 0.12, 0.13, 1.0), (0.22, 0.22, 0.24, 1.0), (0.85, 0.2, 0.15, 1.0)


class MouseClick(Scene):
    """Press and release the left button without pushing the mouse away.

    Args:
        button: The left button.
    """

    name = "mouse-click-v0"
    instruction = "Click the mouse"
    body = "mouse"
    narrow = PlacementRange((0.19, 0.22), 0.03, 0.17)
    wide = PlacementRange((0.18, 0.23), 0.05, 0.35)
    height = 0.019

    def __init__(self, button: Button | None = None) -> None:
        self.button = button or Button()

    def add_thing(self, spec: Any) -> None:
        """Add the mouse: a shell, its lower front and two buttons; 115 x 62 x 37 mm, 90 g."""
        mouse = add_thing_body(spec, self.body, self.height)
        shell = {"friction": FRICTION, "priority": 1}
        add_box(mouse, (-0.0175, 0, 0), (0.04, 0.031, 0.0185), _BODY, mass=0.062, **shell)
        add_box(mouse, (0.04, 0, -0.004), (0.0175, 0.031, 0.0145), _BODY, mass=0.02, **shell)
        add_box(mouse, (0.04, -0.0165, 0.0125), _HALF, _PLATE, mass=0.004, **shell)
        add_button(mouse, _BUTTON, (0.04, 0.0165, 0.0135), _HALF, self.button, _LEFT)

    def watcher(self, model: Any) -> Watcher:
        """Return what counts clicks."""
        return ButtonWatcher(
            model, self.body, [_BUTTON], _BUTTON, self.button, MOST_DISPLACEMENT
        )  # fmt: skip

    def target(self, data: Any) -> Array:
        """Return the middle of the button's surface."""
        body = data.body(_BUTTON)
        return body.xpos + body.xmat.reshape(3, 3)[:, 2] * _HALF[2]
