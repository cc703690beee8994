"""Pictures of start poses over what the cameras see, so that things are put back as they were.

The overlay is a picture per camera, and a page beside them that shows the newest.
"""

from __future__ import annotations

import io
import os
import sys
import time
import webbrowser
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prism_motor._extras import missing_extra
from prism_motor.pilots.layout import POSES
from prism_motor.runs.atomic import atomic_file, write_text

Image = NDArray[np.uint8]

_EVERY = 0.4
"""Seconds between two overlays."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Start pose</title>
<style>body {{ margin: 0; background: #111; color: #ddd; font: 16px sans-serif; }}
img {{ width: min(100%, 960px); image-rendering: auto; display: block; margin: 8px auto; }}
p {{ text-align: center; }}</style></head><body>
<p>Put things where the pale picture shows them, then press space in the terminal.</p>
{images}
<script>setInterval(() => document.querySelectorAll("img").forEach((image) => {{
  const next = new Image();
  next.onload = () => {{ image.src = next.src; }};
  next.src = image.dataset.file + "?" + Date.now(); }}), 500);</script>
</body></html>
"""


class StartPictures:
    """The pictures of a pilot's start poses.

    Args:
        folder: The pilot's folder.
        given: Folder of pictures that the plan names; ``None``: the first trial at a pose takes
            them.
    """

    def __init__(self, folder: Path, given: Path | None) -> None:
        self.folder, self.given = folder / POSES, given
        self._shown = 0.0
        self._opened = False

    def reference(self, pose: int) -> dict[str, Image]:
        """Return how things were placed for a start pose, by camera; empty for a new one."""
        if self.given is not None:
            files = {file.stem.partition("-")[2]: file for file in self.given.glob(f"{pose}-*.png")}
        else:
            found = self.folder.glob(f"{pose:03d}-*.png")
            files = {file.stem.partition("-")[2]: file for file in found}
        return {camera: _read(file) for camera, file in files.items()}

    def keep(self, pose: int, images: Mapping[str, Image]) -> None:
        """Keep how things are placed now as the reference of a start pose, unless it has one."""
        if not self.reference(pose):
            for camera, image in images.items():
                _write(self.folder / f"{pose:03d}-{camera}.png", image)

    def overlay(self, pose: int, images: Mapping[str, Image]) -> list[Path]:
        """Write the reference at 50 % over what the cameras see, at most a few times a second."""
        if time.monotonic() - self._shown < _EVERY:
            return []
        self._shown = time.monotonic()
        written = []
        for camera, reference in self.reference(pose).items():
            if camera in images:
                file = self.folder / f"overlay-{camera}.png"
                _write(file, blend(images[camera], reference))
                written.append(file)
        return written

    def show(self, files: list[Path]) -> str:
        """Open the page of overlays where there is a display; return what to tell the operator."""
        listed = "\n".join(f'<img alt="" data-file="{f.name}" src="{f.name}">' for f in files)
        page = self.folder / "overlay.html"
        write_text(page, _PAGE.format(images=listed))
        if has_display() and (self._opened or webbrowser.open(page.resolve().as_uri())):
            self._opened = True
            return f"The browser shows the start pose over the camera ({page})."
        return f"Compare with the start pose: {', '.join(map(str, files))}"


def blend(image: Image, reference: Image) -> Image:
    """Return the mean of two pictures; the reference takes the size of the other."""
    if reference.shape != image.shape:
        size = (image.shape[1], image.shape[0])
        reference = np.asarray(_pillow().fromarray(reference).resize(size))
    return ((image.astype(np.uint16) + reference) // 2).astype(np.uint8)


def has_display() -> bool:
    """Return whether this session can open windows."""
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _pillow():  # noqa: ANN202  a module
    try:
        from PIL import Image as pillow  # noqa: N813
    except ImportError as error:
        raise missing_extra("A pilot", "pilot", error) from error
    return pillow


def _read(file: Path) -> Image:
    with _pillow().open(file) as picture:
        return np.asarray(picture.convert("RGB"))


def _write(file: Path, image: Image) -> None:
    buffer = io.BytesIO()
    _pillow().fromarray(image).save(buffer, format="PNG")
    with atomic_file(file) as stream:
        stream.write(buffer.getvalue())
