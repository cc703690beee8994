"""Supervised fits of studies: standardised data, several networks trained at once, their errors.

Networks of one shape that differ in seed, learning rate or data are trained together
(:mod:`prism_motor.studies.stacked`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor.nn.pruning import shrunk
from prism_motor.studies.stacked import StackedNetworks

_BETAS, _EPSILON = (0.9, 0.999), 1e-8
"""Adam's constants, as in ``torch.optim.Adam``."""


@dataclass(frozen=True)
class Split:
    """One part of a data set, one sample per row."""

    inputs: np.ndarray
    """(rows, inputs)."""
    targets: np.ndarray
    """(rows, outputs)."""


@dataclass(frozen=True)
class Splits:
    """The parts of a data set."""

    train: Split
    """What networks are trained on."""
    validation: Split
    """What chooses learning rates."""
    test: Split
    """What errors are reported on."""
    extrapolation: Split
    """Like the test part, with inputs beyond the range of training."""


class Standardised:
    """Data as float32 tensors, with the mean and deviation of the training part."""

    def __init__(self, data: Splits) -> None:
        train = data.train
        self._centre = train.inputs.mean(0), train.targets.mean(0)
        self._scale = train.inputs.std(0), train.targets.std(0)
        self.train = self._tensors(train)
        self.validation = self._tensors(data.validation)
        self.test = self._tensors(data.test)
        self.extrapolation = self._tensors(data.extrapolation)

    def _tensors(self, split: Split) -> tuple[Tensor, Tensor]:
        pairs = zip((split.inputs, split.targets), self._centre, self._scale, strict=True)
        x, y = ((values - centre) / scale for values, centre, scale in pairs)
        return torch.from_numpy(x).float(), torch.from_numpy(y).float()

    def in_units(self, targets: Tensor) -> np.ndarray:
        """Undo the standardisation of targets."""
        return targets.double().numpy() * self._scale[1] + self._centre[1]


@dataclass(frozen=True)
class Member:
    """One of several networks that are trained together."""

    network: nn.Sequential
    """The network, which training changes."""
    data: Standardised
    """Its data; all members have as many training rows."""
    seed: int
    """Seed of the order of its batches."""
    learning_rate: float
    """Its peak learning rate."""


def train_together(
    members: Sequence[Member],
    *,
    updates: int,
    batch: int,
    weight: Tensor | None = None,
    gate_rate: float = 1.0,
    gate_cost: float = 0.0,
    marks: Mapping[int, Callable[[], None]] | None = None,
) -> None:
    """Minimise the squared error of several networks of one shape with Adam.

    Every member has its own parameters, data, order and rate; only the arithmetic is shared.

    Args:
        members: What to train, in place.
        updates: Number of updates.
        batch: Rows per update and member.
        weight: Weight of each output column; equal ones that sum to one by default.
        gate_rate: Learning rate of parameters called ``gate`` relative to all others.
        gate_cost: How far gates shrink in each update, relative to the learning rate.
        marks: Called after these updates, when the networks hold their present parameters.
    """
    x, y, offsets = _join([member.data for member in members])
    rows = _batches([member.seed for member in members], len(members[0].data.train[0]), batch)
    weight = torch.full((y.shape[1],), 1 / y.shape[1]) if weight is None else weight
    networks = StackedNetworks([member.network for member in members])
    adam = _Adam(networks, gate_rate, gate_cost)
    rates = torch.tensor([[member.learning_rate] for member in members])
    for update in range(updates):
        at = next(rows) + offsets
        error = (networks(x[at]) - y[at]).square().mean(1)
        adam.step((error * weight).sum(), rates * learning_rate_factor(update, updates))
        if marks and update + 1 in marks:
            networks.write_back()
            marks[update + 1]()
    networks.write_back()


class _Adam:
    """Adam on the parameters of several networks, with a learning rate for each."""

    def __init__(self, networks: StackedNetworks, gate_rate: float, gate_cost: float) -> None:
        self._flat, self._factor = networks.flat, networks.per_parameter("gate", gate_rate)
        self._gates = networks.per_parameter("gate", -1.0) < 0
        self._gate_cost = gate_cost
        self._mean, self._square = (torch.zeros_like(self._flat) for _ in range(2))
        self._count = 0

    def step(self, loss: Tensor, rates: Tensor) -> None:
        """Do one update with a learning rate per network: (networks, 1)."""
        (gradient,) = torch.autograd.grad(loss, self._flat)
        self._count += 1
        with torch.no_grad():
            self._mean.lerp_(gradient, 1 - _BETAS[0])
            self._square.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
            mean_bias, square_bias = (1 - beta**self._count for beta in _BETAS)
            scale = self._square.sqrt().div_(math.sqrt(square_bias)).add_(_EPSILON)
            self._flat.sub_((self._mean / scale).mul_(rates / mean_bias * self._factor))
            if self._gate_cost:
                gates = self._flat[:, self._gates]
                self._flat[:, self._gates] = shrunk(gates, self._gate_cost * rates)


def _join(data: Sequence[Standardised]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the training rows of all distinct data sets, and where each member's begin."""
    distinct = list(dict.fromkeys(data))
    x, y = (torch.cat([one.train[part] for one in distinct]) for part in (0, 1))
    rows = len(distinct[0].train[0])
    return x, y, torch.tensor([[rows * distinct.index(one)] for one in data])


def _batches(seeds: Sequence[int], rows: int, batch: int) -> Iterator[Tensor]:
    """Yield the rows of each update, (members, batch), a new order in every pass."""
    shufflers = [torch.Generator().manual_seed(seed) for seed in seeds]
    while True:
        orders = torch.stack([torch.randperm(rows, generator=one) for one in shufflers])
        yield from orders.split(batch, dim=1)


def learning_rate_factor(update: int, updates: int) -> float:
    """Rise over the first tenth of the updates, then fall to zero along a cosine."""
    rise = min(1.0, (update + 1) / (0.1 * updates))
    return rise * 0.5 * (1 + math.cos(math.pi * update / updates))


@torch.no_grad()
def unexplained(
    network: nn.Module, x: Tensor, y: Tensor, columns: Mapping[str, slice]
) -> dict[str, float | None]:
    """Return the share of the variance left unexplained, per target: squared error / variance.

    It is 1 - R^2 on these rows; a target of several columns gets their mean, and ``None`` means
    that the network returned a value that is not finite.
    """
    error = (network(x) - y).double().square().mean(0)
    ratio = error / y.double().var(0, correction=0)
    shares = {name: float(ratio[found].mean()) for name, found in columns.items()}
    return {name: share if math.isfinite(share) else None for name, share in shares.items()}


def overall(shares: Mapping[str, float | None]) -> float | None:
    """Return the geometric mean over the targets, so that the hardest one does not dominate."""
    logs = [math.log(max(share, 1e-12)) for share in shares.values() if share is not None]
    return math.exp(sum(logs) / len(logs)) if len(logs) == len(shares) else None
