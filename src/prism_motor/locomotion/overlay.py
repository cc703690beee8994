"""The overlay of a video: who the robot is, its command and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from prism_motor._extras import missing_extra

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError as error:
    raise missing_extra("Videos", "video", error) from error

_ROWS = (("forward", "m/s"), ("left", "m/s"), ("turn", "rad/s"))
_RANGE = 1.0
"""Speed at the end of a bar, m/s or rad/s."""
_INK, _FAINT, _COMMAND, _MEASURED = "#1d2733", "#c3ccd6", "#d9622b", "#1a6bb8"


class WalkingOverlay:
    """Draws text and bars over the frames of a video.

    Args:
        title: First line of every frame.
        width: Width of the frames, pixels; font and bar sizes follow from it.
        height: Height of the frames, pixels.
    """

    def __init__(self, title: str, width: int, height: int) -> None:
        self.title = title
        self.unit = min(width / 640, height / 480)
        self.font: Any = ImageFont.load_default(size=14 * self.unit)
        self.small: Any = ImageFont.load_default(size=12 * self.unit)

    def draw(
        self,
        picture: np.ndarray,
        status: str,
        command: Sequence[float] | None,
        velocity: Sequence[float],
    ) -> np.ndarray:
        """Return the frame with title, status and one bar each for forward, left and turn.

        Args:
            picture: The frame, (height, width, 3).
            status: Second line.
            command: The robot's command; ``None`` in a task without commands.
            velocity: Its measured velocity.
        """
        image = Image.fromarray(picture)
        draw = ImageDraw.Draw(image, "RGBA")
        u = self.unit
        draw.text((12 * u, 10 * u), self.title, fill=_INK, font=self.font)
        draw.text((12 * u, 30 * u), status, fill=_INK, font=self.small)
        # Beside the head: at the bottom it would hide the feet.
        top = 52 * u
        draw.rounded_rectangle(
            (8 * u, top, 266 * u, top + 84 * u), radius=8 * u, fill=(255, 255, 255, 200)
        )
        if command is not None:
            self._text(draw, 178, top + 6 * u, "told", _COMMAND, anchor="ra")
        self._text(draw, 224, top + 6 * u, "does", _MEASURED, anchor="ra")
        for row, (name, unit) in enumerate(_ROWS):
            y = top + (26 + 18 * row) * u
            self._text(draw, 16, y, name, _INK)
            self._bar(draw, y + 7 * u, None if command is None else command[row], velocity[row])
            if command is not None:
                self._text(draw, 178, y, _number(command[row]), _COMMAND, anchor="ra")
            self._text(draw, 224, y, _number(velocity[row]), _MEASURED, anchor="ra")
            self._text(draw, 229, y, unit, _INK)
        return np.asarray(image)

    def _text(
        self, draw: Any, x: float, y: float, words: str, colour: str, anchor: str = "la"
    ) -> None:
        draw.text((x * self.unit, y), words, fill=colour, font=self.small, anchor=anchor)

    def _bar(self, draw: Any, y: float, command: float | None, measured: float) -> None:
        """Draw the measured speed as a bar from the middle, the commanded one as a mark."""
        u = self.unit
        middle, half = 104 * u, 36 * u

        def at(value: float) -> float:
            return middle + half * max(-1.0, min(1.0, value / _RANGE))

        draw.line((middle - half, y, middle + half, y), fill=_FAINT, width=round(2 * u) or 1)
        left, right = sorted((middle, at(measured)))
        draw.rectangle((left, y - 4 * u, right, y + 4 * u), fill=_MEASURED)
        if command is not None:
            x = at(command)
            draw.rectangle((x - 1.5 * u, y - 7 * u, x + 1.5 * u, y + 7 * u), fill=_COMMAND)


def _number(value: float) -> str:
    """Format with two decimals, never -0.00."""
    return f"{round(value, 2) + 0.0:.2f}"
