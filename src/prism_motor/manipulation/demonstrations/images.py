"""Images of demonstrations: decoded once into memory, or when needed if they are too many."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prism_motor._console import Progress, available_cores
from prism_motor.manipulation.sensing import scale

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
        self._rows = None
        if not self._video:
            self._rows = dataset.hf_dataset.select_columns([key]).with_format(None)

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def bytes(self) -> int:
        """Memory that all images need."""
        return len(self) * 3 * self.size**2

    def __getitem__(self, index: int) -> Tensor:
        """Decode one image: 3 x size x size."""
        from PIL import Image

        if self._rows is None:
            frame = (self.dataset[index][self.key] * 255).byte()
            image = Image.fromarray(frame.permute(1, 2, 0).numpy())
        else:
            image = self._rows[index][self.key]
        array = scale(np.array(image.convert("RGB")), self.size)
        return torch.from_numpy(np.array(array)).permute(2, 0, 1)

    def decode(self) -> Tensor:
        """Decode all images."""
        decoded = torch.empty((len(self), 3, self.size, self.size), dtype=torch.uint8)
        with Progress(f"Reading {self.key}", len(self)) as progress:
            for index in range(len(self)):
                decoded[index] = self[index]
                progress.step()
        return decoded


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
