"""Statistics that LeRobot's processors normalise by."""

from __future__ import annotations

import torch
from torch import Tensor

from prism_motor.manipulation.demonstrations.cache import Demonstrations

SMALLEST_RANGE = 0.01
"""Narrower ranges (m, rad) are widened to this: what hardly moves in demonstrations must not be
blown up to the whole range, or a disturbance of a millimetre becomes the loudest signal."""

_IMAGE_MEAN, _IMAGE_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet, which LeRobot uses for every dataset by default."""

Statistics = dict[str, dict[str, Tensor]]


def measure_statistics(demonstrations: Demonstrations) -> Statistics:
    """Return the statistics of all columns."""
    found: Statistics = {}
    for key, values in demonstrations.vectors.items():
        low, high = values.amin(0), values.amax(0)
        wider = (SMALLEST_RANGE - (high - low)).clamp(min=0) / 2
        found[key] = {"min": low - wider, "max": high + wider}
    for key in demonstrations.images:
        pair = {"mean": _IMAGE_MEAN, "std": _IMAGE_STD}
        found[key] = {name: torch.tensor(rgb).reshape(3, 1, 1) for name, rgb in pair.items()}
    return found
