"""The overlay of a tracking video: at the top, so that nothing hides the feet."""

from __future__ import annotations

from typing import Any

import numpy as np

from prism_motor._extras import missing_extra

_INK, _FAINT, _UPRIGHT, _FALLEN = "#1d2733", "#c3ccd6", "#2e8b57", "#c8452e"


class TrackingOverlay:
    """Draws who the robot is, what it tracks and how well over the pictures of a video.

    Args:
        title: First line of every picture.
        width: Width of the pictures, pixels; sizes follow from it.
        height: Height of the pictures, pixels.
    """

    def __init__(self, title: str, width: int, height: int) -> None:
        try:
            from PIL import ImageFont
        except ImportError as error:
            raise missing_extra("Videos", "video", error) from error
        self.title = title
        self.unit = min(width / 640, height / 480)
        self.font: Any = ImageFont.load_default(size=14 * self.unit)
        self.small: Any = ImageFont.load_default(size=12 * self.unit)

    def draw(
        self, picture: np.ndarray, status: str, upright: np.ndarray, frames: int, emd: float
    ) -> np.ndarray:
        """Return the picture with title, status, upright share, EMD and a bar of the time so far.

        Args:
            picture: The picture, (height, width, 3).
            status: Second line.
            upright: Whether the robot was upright in the frames so far.
            frames: How many there will be.
            emd: EMD of the frames so far, rad.
        """
        from PIL import Image, ImageDraw

        image = Image.fromarray(picture)
        draw = ImageDraw.Draw(image, "RGBA")
        u, right = self.unit, image.width - 12 * self.unit
        draw.text((12 * u, 10 * u), self.title, fill=_INK, font=self.font)
        draw.text((12 * u, 30 * u), status, fill=_INK, font=self.small)
        colour = _UPRIGHT if upright[-1] else _FALLEN
        words = f"upright {upright.mean():.0%} so far"
        draw.text((right, 11 * u), words, fill=colour, font=self.small, anchor="ra")
        draw.text((right, 30 * u), f"EMD {emd:.2f} rad", fill=_INK, font=self.small, anchor="ra")
        self._bar(draw, upright, frames, right)
        return np.asarray(image)

    def _bar(self, draw: Any, upright: np.ndarray, frames: int, right: float) -> None:
        """Draw the time so far: where the robot stood, and where it did not."""
        u = self.unit
        left, top, low = 12 * u, 50 * u, 54 * u
        draw.rectangle((left, top, right, low), fill=_FAINT)
        edges = np.flatnonzero(np.diff(upright, prepend=~upright[:1]))
        for first, end in zip(edges, [*edges[1:], len(upright)], strict=True):
            start, stop = (left + (right - left) * i / frames for i in (int(first), int(end)))
            draw.rectangle((start, top, stop, low), fill=_UPRIGHT if upright[first] else _FALLEN)
