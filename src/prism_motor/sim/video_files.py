"""Writing MP4 and GIF files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from prism_motor._checks import InputError, PrismError, check_choice
from prism_motor._extras import missing_extra

try:
    import imageio.v2 as imageio
    import imageio_ffmpeg  # noqa: F401  imageio finds ffmpeg through it
    from PIL import Image
except ImportError as error:
    raise missing_extra("Videos", "video", error) from error


def _mp4(file: Path, rate: float) -> Any:
    return imageio.get_writer(
        file, format="FFMPEG", fps=rate, codec="libx264", quality=8, macro_block_size=2
    )


class _Gif:
    """Collects images in 256 colours and writes them when closed."""

    def __init__(self, file: Path, rate: float) -> None:
        self.file, self.rate = file, rate
        self.pictures: list[Image.Image] = []

    def append_data(self, picture: np.ndarray) -> None:
        # The octree keeps small spots of colour, which the default method drops.
        image = Image.fromarray(picture).quantize(method=Image.Quantize.FASTOCTREE)
        self.pictures.append(image)

    def close(self) -> None:
        if self.pictures:
            first, *others = self.pictures
            duration = 1000 / self.rate
            first.save(self.file, save_all=True, append_images=others, duration=duration, loop=0)


FORMATS: dict[str, Callable[[Path, float], Any]] = {".mp4": _mp4, ".gif": _Gif}
"""Writers by file name extension, called with a file and a frame rate."""


def unused_file(folder: Path, stem: str) -> Path:
    """Return an .mp4 file that no video in a folder shares its stem with, numbered if need be."""
    number, name = 1, stem
    while any((folder / f"{name}{suffix}").exists() for suffix in FORMATS):
        number += 1
        name = f"{stem}-{number}"
    return folder / f"{name}.mp4"


def check_file(file: Path) -> None:
    """Raise unless a video can be written under this name."""
    check_choice("kind of video", file.suffix.lower(), FORMATS)
    if file.is_dir():
        raise InputError(f"{file} is a folder; give the name of a video file.")
    file.parent.mkdir(parents=True, exist_ok=True)


def write_video(file: Path, pictures: Iterable[np.ndarray], rate: float) -> None:
    """Write a video; the file appears only when it is complete.

    Args:
        file: Where to; .mp4 or .gif.
        pictures: Frames (height, width, 3), with even sides for MP4.
        rate: Frames per second.
    """
    check_file(file)
    temporary = file.with_name(f".{file.stem}.{os.getpid()}{file.suffix.lower()}")
    try:
        temporary.touch()  # a folder that cannot be written to is found before anything is drawn
        with closing(FORMATS[file.suffix.lower()](temporary, rate)) as writer:
            for picture in pictures:
                _append(writer, picture, file)
        if not temporary.stat().st_size:
            raise _unwritten(file)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _append(writer: Any, picture: np.ndarray, file: Path) -> None:
    try:
        writer.append_data(picture)
    except BrokenPipeError as error:
        raise _unwritten(file) from error
    except OSError as error:  # of imageio, with the message of the one above as its text
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        raise _unwritten(file) from error


def _unwritten(file: Path) -> PrismError:
    return PrismError(f"{file} could not be written: ffmpeg ended early. Is the disk full?")
