"""Random shifts of training images, the same for every arm of a comparison."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

_STREAM = 7_000_003
"""Keeps the shifts apart from the order of samples, which has the same seed."""


def shift_images(images: Tensor, most: int, seed: int, update: int, camera: int) -> Tensor:
    """Return images moved by up to ``most`` pixels each way; what enters repeats the edge.

    All images of a sample move together, so that motion between them stays what it was. The result
    depends only on the arguments: neither the arm nor an interruption changes it, and no other
    random numbers are used up.

    Args:
        images: Samples x observations x 3 x height x width.
        most: Largest shift, pixels.
        seed: Training seed.
        update: Number of the update, from 0.
        camera: Number of the camera; cameras move independently.
    """
    generator = torch.Generator().manual_seed(_STREAM * (seed + 1) + 64 * update + camera)
    shifts = torch.randint(0, 2 * most + 1, (len(images), 2), generator=generator).tolist()
    height, width = images.shape[-2:]
    padded = F.pad(images.flatten(0, 1), (most,) * 4, mode="replicate")
    padded = padded.unflatten(0, images.shape[:2])
    moved = [
        padded[sample, ..., down : down + height, right : right + width]
        for sample, (down, right) in enumerate(shifts)
    ]
    return torch.stack(moved)
