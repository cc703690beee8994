"""Images of demonstrations: decoded once into memory, or when needed if they are too many."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prism_motor._console import Progress, available_cores
from prism_motor.sim.sensing import crop_square, scale

_TOGETHER = 32
"""Images of a video that are decoded together: as they are stored, they take most memory."""

MOST_BYTES = 8 * 2**30
"""Decoded images of a dataset that are kept in memory; more are decoded when they are needed."""


class ImageColumn:
    """The images of one camera in a LeRobotDataset.

    Args:
        dataset: The dataset.
        key: The column.
        size: Side that images are scaled to, pixels.
    """

    def __init__(self, dataset: Any, key: str, size: int) -> None:
        self.dataset, self.key, self.size = dataset, key, size
        self._video = dataset.meta.features[key]["dtype"] == "video"
        columns = ["episode_index", "timestamp"] if self._video else [key]
        self._rows = dataset.hf_dataset.select_columns(columns).with_format(None)

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def bytes(self) -> int:
        """Memory that all images need."""
        return len(self) * 3 * self.size**2

    def __getitem__(self, index: int) -> Tensor:
        """Decode one image: 3 x size x size."""
        row = self._rows[index]
        if self._video:
            return next(self._frames(row["episode_index"], [row["timestamp"]]))
        return self._fit(np.array(row[self.key].convert("RGB")))

    def decode(self) -> Tensor:
        """Decode all images, those of a video in one go."""
        decoded = torch.empty((len(self), 3, self.size, self.size), dtype=torch.uint8)
        with Progress(f"Reading {self.key}", len(self)) as progress:
            images = self._in_videos() if self._video else map(self.__getitem__, range(len(self)))
            for index, image in enumerate(images):
                decoded[index] = image
                progress.step()
        return decoded

    def _in_videos(self) -> Iterator[Tensor]:
        """Yield all images of a video column, several at a time from the same file."""
        rows = self._rows[:]
        pairs = zip(rows["episode_index"], rows["timestamp"], strict=True)
        for episode, steps in groupby(pairs, key=itemgetter(0)):
            times = [time for _, time in steps]
            for first in range(0, len(times), _TOGETHER):
                yield from self._frames(episode, times[first : first + _TOGETHER])

    def _frames(self, episode: int, times: list[float]) -> Iterator[Tensor]:
        """Decode images of one episode from the file of this camera alone."""
        from lerobot.datasets.video_utils import decode_video_frames

        meta = self.dataset.meta
        start = meta.episodes[episode][f"videos/{self.key}/from_timestamp"]
        file = meta.root / meta.get_video_file_path(episode, self.key)
        wanted = [start + time for time in times]
        for frame in decode_video_frames(file, wanted, self.dataset.tolerance_s):
            yield self._fit((frame * 255).byte().permute(1, 2, 0).numpy())

    def _fit(self, image: NDArray[np.uint8]) -> Tensor:
        """Return the square in the middle at the column's size: 3 x size x size."""
        array = scale(np.ascontiguousarray(crop_square(image)), self.size)
        return torch.from_numpy(np.array(array)).permute(2, 0, 1)


class StoredImages:
    """Images that stay in their datasets; those asked for are decoded, several at a time.

    Args:
        columns: Where they are; their images are numbered one column after another.
    """

    def __init__(self, columns: Sequence[ImageColumn]) -> None:
        self.columns = tuple(columns)
        self._ends = list(accumulate(len(column) for column in columns))
        self._pool = ThreadPoolExecutor(min(16, available_cores()))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, numbers: Tensor) -> Tensor:
        """Return images by number: (...) to (..., 3, size, size)."""
        drawn = list(self._pool.map(self._read, numbers.flatten().tolist()))
        return torch.stack(drawn).unflatten(0, numbers.shape)

    def _read(self, number: int) -> Tensor:
        place = bisect_right(self._ends, number)
        return self.columns[place][number - (self._ends[place - 1] if place else 0)]


def join_images(parts: Sequence[Tensor | StoredImages]) -> Tensor | StoredImages:
    """Return the images of several datasets one after another."""
    held = [part for part in parts if isinstance(part, Tensor)]
    if len(held) == len(parts) and sum(part.numel() for part in held) <= MOST_BYTES:
        return torch.cat(held)
    return StoredImages([column for part in parts for column in _columns(part)])


def _columns(part: Tensor | StoredImages) -> Sequence[Any]:
    return part.columns if isinstance(part, StoredImages) else (part,)
