"""Training samples: short windows of demonstrations, drawn in a reproducible order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor.manipulation.demonstrations.dataset import ACTION

if TYPE_CHECKING:
    from prism_motor.manipulation.config import PolicyNetwork
    from prism_motor.manipulation.demonstrations.cache import Demonstrations


class TrainingWindows:
    """Every step of every demonstration as a sample, except the last few of an episode.

    A sample holds the observations up to its step and the actions starting at the first of them.
    Beyond the ends of an episode, its first and last steps are repeated. How many of the last steps
    of an episode start no sample is up to the network.

    Args:
        demonstrations: The data.
        network: How many observations and actions a sample has.
    """

    def __init__(self, demonstrations: Demonstrations, network: PolicyNetwork) -> None:
        self.demonstrations = demonstrations
        past = network.observation_steps - 1
        self._observed = torch.arange(-past, 1)
        self._acted = torch.arange(-past, network.horizon - past)
        dropped = network.dropped
        pairs = zip(demonstrations.starts.tolist(), demonstrations.ends.tolist(), strict=True)
        rows = [
            (step, start, end - 1, episode)
            for episode, (start, end) in enumerate(pairs)
            for step in range(start, max(start + 1, end - dropped))
        ]
        self._steps, self._first, self._last, self._episode = torch.tensor(rows).T

    def __len__(self) -> int:
        return len(self._steps)

    def instructions(self, samples: Tensor) -> list[str]:
        """Return the instructions of samples by index."""
        said = self.demonstrations.instructions
        return [said[episode] for episode in self._episode[samples].tolist()]

    def batch(self, samples: Tensor) -> dict[str, Tensor]:
        """Return samples by index, with LeRobot's names; image values are in [0, 1]."""
        steps, first = self._steps[samples, None], self._first[samples, None]
        last = self._last[samples, None]
        observed = (steps + self._observed).clamp(first, last)
        wanted = steps + self._acted
        acted = wanted.clamp(first, last)
        vectors, images = self.demonstrations.vectors, self.demonstrations.images
        batch = {
            key: values[acted if key == ACTION else observed] for key, values in vectors.items()
        }
        batch |= {key: values[observed].float() / 255 for key, values in images.items()}
        batch[f"{ACTION}_is_pad"] = acted != wanted
        return batch


def draw_samples(count: int, size: int, seed: int, update: int) -> Tensor:
    """Return the sample indices of one update: all samples are used once, then reshuffled.

    The result depends only on the arguments, so training can resume anywhere without a record of
    what was drawn.

    Args:
        count: Total number of samples.
        size: Number of samples to return.
        seed: Seed of the order.
        update: Number of the update, from 0.
    """
    chosen: list[Tensor] = []
    position, left = update * size, size
    while left:
        epoch, offset = divmod(position, count)
        generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
        part = torch.randperm(count, generator=generator)[offset : offset + left]
        chosen.append(part)
        position, left = position + len(part), left - len(part)
    return torch.cat(chosen)
