"""The replay buffer: time rows of all environments, and the successors that belong to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor._checks import InputError

if TYPE_CHECKING:
    from prism_motor.tracking.observations import Layout

OBSERVATION, ENDS = "observation", "ends"


def transition_fields(layout: Layout, latent: int, terms: int, physics: int = 0) -> dict[str, int]:
    """Return the entries per environment and row of everything that is stored.

    Args:
        layout: The observations.
        latent: Size of the latent.
        terms: Raw terms of the auxiliary reward.
        physics: Entries of positions and velocities, from which rewards of prompts are computed.
    """
    sizes = {OBSERVATION: layout.size, "action": layout.actions, "latent": latent}
    return {**sizes, "auxiliary": terms} | ({"physics": physics} if physics else {})


def replay_bytes(rows: int, envs: int, sizes: Mapping[str, int]) -> int:
    """Return the memory that a buffer needs."""
    return rows * envs * (4 * sum(sizes.values()) + 1)


class ReplayBuffer:
    """A ring of time rows; row t of an environment is followed by row t + 1 unless it ends there.

    Rows are numbered from the first one ever added; row i is at place i modulo capacity. The newest
    row has no successor yet. The environment resets itself, so the row after an episode's last
    holds another episode's first observation: such pairs are never drawn.

    Args:
        rows: Capacity, in time rows.
        envs: Environments.
        sizes: Entries of every field.
        seed: Seed of the draws.
        device: Where the buffer is.
    """

    def __init__(
        self,
        rows: int,
        envs: int,
        sizes: Mapping[str, int],
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.capacity, self.envs, self.sizes = rows, envs, dict(sizes)
        self.generator = torch.Generator(device).manual_seed(seed)
        try:
            self.fields = {
                name: torch.zeros(rows, envs, size, device=device) for name, size in sizes.items()
            }
            self.fields[ENDS] = torch.zeros(rows, envs, dtype=torch.bool, device=device)
        except (RuntimeError, MemoryError) as error:
            need = replay_bytes(rows, envs, sizes) / 1e9
            raise InputError(
                f"The replay buffer of {rows:,} rows x {envs:,} environments needs {need:.1f} GB, "
                f"which {device} does not have. Lower replay.rows or the environments, or set "
                "replay.place to host."
            ) from error
        self.added = 0

    @property
    def bytes(self) -> int:
        """The memory that it needs."""
        return replay_bytes(self.capacity, self.envs, self.sizes)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return min(self.added, self.capacity)

    @property
    def oldest(self) -> int:
        """Number of the oldest row."""
        return self.added - len(self)

    def add(self, *, ends: Tensor, **values: Tensor) -> None:
        """Append a row: what was seen and done at a step.

        Args:
            ends: Whether the episode ended with this step, so that the next row is another's (N,).
            **values: Every field (N, size).
        """
        if set(values) != set(self.sizes):
            raise InputError(
                f"A replay row has the fields {', '.join(self.sizes)}; got {', '.join(values)}."
            )
        place = self.added % self.capacity
        for name, value in values.items():
            self.fields[name][place] = value
        self.fields[ENDS][place] = ends
        self.added += 1

    def sample(self, count: int) -> dict[str, Tensor]:
        """Draw transitions uniformly, with replacement; every field, and ``next_observation``."""
        places = self._draw(count)
        rows, envs = places // self.envs, places % self.envs
        followers = (rows + 1) % self.capacity * self.envs + envs
        batch = {
            name: self.fields[name].view(-1, size).index_select(0, places)
            for name, size in self.sizes.items()
        }
        observations = self.fields[OBSERVATION].view(-1, self.sizes[OBSERVATION])
        return {**batch, f"next_{OBSERVATION}": observations.index_select(0, followers)}

    def _draw(self, count: int) -> Tensor:
        """Draw places of rows that have a successor: reject those that have none."""
        candidates = (len(self) - 1) * self.envs
        if candidates <= 0:
            raise InputError(
                f"The replay buffer has {len(self)} rows; transitions need at least two."
            )
        ends = self.fields[ENDS].view(-1)
        first, total = self.oldest % self.capacity * self.envs, self.capacity * self.envs
        places = torch.empty(count, dtype=torch.long, device=ends.device)
        missing = torch.arange(count, device=ends.device)
        for _ in range(1000):
            drawn = torch.randint(
                candidates, (len(missing),), generator=self.generator, device=ends.device
            )
            drawn = (drawn + first) % total
            places[missing] = drawn
            missing = missing[ends[drawn]]
            if not len(missing):
                return places
        raise InputError(
            "The replay buffer has next to no transition: almost every row ends an episode."
        )

    def rows(self, first: int, last: int) -> dict[str, Tensor]:
        """Return copies of the fields of the rows ``first`` to ``last``, exclusive, on the CPU."""
        places = torch.arange(first, last) % self.capacity
        return {name: values[places].cpu() for name, values in self.fields.items()}

    def put(self, first: int, values: Mapping[str, Tensor]) -> None:
        """Write rows back to where :meth:`rows` took them from."""
        places = torch.arange(first, first + len(values[ENDS])) % self.capacity
        for name, saved in values.items():
            self.fields[name][places] = saved.to(self.fields[name].device)
