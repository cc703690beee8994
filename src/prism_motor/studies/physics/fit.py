"""Training one arm with one seed and one learning rate."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor.nn import PolynomialLayer, count_parameters
from prism_motor.studies.physics.arm import signal_names
from prism_motor.studies.physics.config import PhysicsConfig
from prism_motor.studies.physics.contenders import Contender
from prism_motor.studies.physics.dataset import Dataset, Split
from prism_motor.studies.physics.targets import TARGETS, target_columns

_LISTED_PRODUCTS = 10


@dataclass(frozen=True)
class Job:
    """One training run."""

    arm: str
    seed: int
    learning_rate: float

    @property
    def key(self) -> str:
        """Name in results.json."""
        return f"{self.arm}/seed{self.seed}/lr{self.learning_rate:g}"


class Standardised:
    """The dataset as float32 tensors, with the mean and deviation of the training part."""

    def __init__(self, dataset: Dataset) -> None:
        train = dataset.train
        self._centre = train.inputs.mean(0), train.targets.mean(0)
        self._scale = train.inputs.std(0), train.targets.std(0)
        self.train = self._tensors(train)
        self.validation = self._tensors(dataset.validation)
        self.test = self._tensors(dataset.test)
        self.extrapolation = self._tensors(dataset.extrapolation)
        self.rows_per_episode = dataset.rows_per_episode

    def _tensors(self, split: Split) -> tuple[Tensor, Tensor]:
        pairs = zip((split.inputs, split.targets), self._centre, self._scale, strict=True)
        x, y = ((values - centre) / scale for values, centre, scale in pairs)
        return torch.from_numpy(x).float(), torch.from_numpy(y).float()

    def in_units(self, targets: Tensor) -> np.ndarray:
        """Undo the standardisation of targets."""
        return targets.double().numpy() * self._scale[1] + self._centre[1]


def fit(
    job: Job, contender: Contender, config: PhysicsConfig, data: Standardised
) -> dict[str, Any]:
    """Train and evaluate; returns the job's entry of results.json."""
    started = time.perf_counter()
    torch.manual_seed(job.seed)
    x, y = data.train
    network = contender.make(x.shape[1], y.shape[1], config.budget, config.head)
    curve = _train(network, job, config, data)
    result: dict[str, Any] = {
        **asdict(job),
        "parameters": count_parameters(network),
        "validation": unexplained(network, *data.validation),
        "test": unexplained(network, *data.test),
        "extrapolation": unexplained(network, *data.extrapolation),
        "curve": curve,
        "seconds": round(time.perf_counter() - started, 3),
    }
    if job.seed == config.reported_seeds[0]:
        result["trace"] = _first_test_episode(network, data)
    front = network[0]
    if isinstance(front, PolynomialLayer) and front.degree > 1:
        result["products"] = [
            asdict(product) for product in front.interactions(signal_names(), _LISTED_PRODUCTS)
        ]
        result["pair_strength"] = pair_strength(network).tolist()
    return result


def _train(
    network: nn.Sequential, job: Job, config: PhysicsConfig, data: Standardised
) -> list[list[float | None]]:
    """Minimise the squared error, every target counting the same; returns the learning curve."""
    x, y = data.train
    weight = _column_weights()
    optimizer = torch.optim.Adam(network.parameters(), lr=job.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate_factor(step, config.steps)
    )
    shuffler = torch.Generator().manual_seed(job.seed)
    batches = iter(())
    marks = {round(m) for m in np.linspace(0, config.steps, config.curve_points + 1)[1:]}
    curve: list[list[float | None]] = []
    for step in range(1, config.steps + 1):
        rows = next(batches, None)
        if rows is None:
            batches = iter(torch.randperm(len(x), generator=shuffler).split(config.batch))
            rows = next(batches)
        loss = ((network(x[rows]) - y[rows]).square().mean(0) * weight).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step in marks:
            curve.append([step, overall(unexplained(network, *data.validation))])
    return curve


def learning_rate_factor(step: int, steps: int) -> float:
    """Rise over the first tenth of the steps, then fall to zero along a cosine."""
    return min(1.0, (step + 1) / (0.1 * steps)) * 0.5 * (1 + math.cos(math.pi * step / steps))


def _column_weights() -> Tensor:
    sizes = torch.tensor([target.size for target in TARGETS])
    return (1.0 / sizes / len(sizes)).repeat_interleave(sizes)


@torch.no_grad()
def unexplained(network: nn.Module, x: Tensor, y: Tensor) -> dict[str, float | None]:
    """Return the share of the variance left unexplained, per target: squared error / variance.

    It is 1 - R^2 on these rows; a target of several columns gets their mean, and ``None`` stands
    for a network that returns something not finite.
    """
    error = (network(x) - y).double().square().mean(0)
    ratio = error / y.double().var(0, correction=0)
    shares = {name: float(ratio[columns].mean()) for name, columns in target_columns().items()}
    return {name: share if math.isfinite(share) else None for name, share in shares.items()}


def overall(shares: dict[str, float | None]) -> float | None:
    """Return the geometric mean over the targets, so that the hardest one does not decide alone."""
    logs = [math.log(max(share, 1e-12)) for share in shares.values() if share is not None]
    return math.exp(sum(logs) / len(logs)) if len(logs) == len(shares) else None


@torch.no_grad()
def _first_test_episode(network: nn.Module, data: Standardised) -> list[list[float | None]]:
    """Predict the first test episode in physical units, to show what an error looks like."""
    predicted = data.in_units(network(data.test[0][: data.rows_per_episode]))
    return [[_rounded(value) for value in row] for row in predicted]


def _rounded(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None


@torch.no_grad()
def pair_strength(network: nn.Sequential) -> Tensor:
    """Return how strongly each product of two signals leaves the front: (inputs, inputs).

    The exact second-degree coefficients of every feature, scaled by the norm of the weights with
    which the head reads the feature, as a root of the sum of squares over features. Inputs are
    standardised, so the entries compare.
    """
    front, reader = network[0], network[1]
    assert isinstance(front, PolynomialLayer)
    assert isinstance(reader, nn.Linear)
    pairs = front.expand().terms[2]
    read = reader.weight.double().norm(dim=0).unsqueeze(-1)
    strength = (pairs.coefficients * read).square().sum(0).sqrt()
    matrix = torch.zeros(front.in_features, front.in_features, dtype=torch.float64)
    first, second = pairs.monomials[0].T
    matrix[first, second] = strength
    matrix[second, first] = strength
    return matrix
