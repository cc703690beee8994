"""The networks of the comparison, and training one of them with one seed and learning rate."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor._checks import InputError, check_choice
from prism_motor.nn import PolynomialLayer, count_parameters, make_interaction
from prism_motor.studies.physics.robot import TARGETS, signal_names, target_columns

if TYPE_CHECKING:
    from prism_motor.studies.physics.config import PhysicsConfig
    from prism_motor.studies.physics.dataset import Dataset, Split

_TOLERANCE = 0.01
"""Allowed relative deviation from the parameter budget."""


@dataclass(frozen=True)
class PhysicsArm:
    """One arm: the layer in front of the head, and its size."""

    name: str
    """Key in results.json and on the command line."""
    label: str
    """Name for readers."""
    interaction: str | None
    """Name in ``prism_motor.nn.INTERACTIONS``; ``None`` for a linear layer with activation."""
    degree: int = 2
    """Degree of the interaction layer."""
    budget_scale: float = 1.0
    """Parameters relative to the common budget."""

    def make(self, inputs: int, outputs: int, budget: int, head: int) -> nn.Sequential:
        """Build the network, with a front as wide as the budget allows (within 1 %)."""
        target = round(budget * self.budget_scale)
        head = round(head * math.sqrt(self.budget_scale))
        width = self._width(inputs, outputs, target, head)
        network = self._network(inputs, outputs, width, head)
        count = count_parameters(network)
        if abs(count - target) > _TOLERANCE * target:
            raise InputError(
                f"{self.label}: no width comes within 1 % of {target:,} parameters with a head of "
                f"{head}; the nearest has {count:,}. Use a larger budget or another head."
            )
        return network

    def _network(self, inputs: int, outputs: int, width: int, head: int) -> nn.Sequential:
        if self.interaction is None:
            front = [nn.Linear(inputs, width), nn.SiLU()]
        else:
            front = [make_interaction(self.interaction, inputs, width, self.degree)]
        return nn.Sequential(
            *front,
            nn.Linear(width, head),
            nn.SiLU(),
            nn.Linear(head, head),
            nn.SiLU(),
            nn.Linear(head, outputs),
        )

    def _width(self, inputs: int, outputs: int, target: int, head: int) -> int:
        """Find the front's width whose parameter count is nearest to ``target``."""

        def miss(width: int) -> int:
            return count_parameters(self._network(inputs, outputs, width, head)) - target

        low, high = 1, 2
        while miss(high) < 0:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if miss(middle) < 0 else (low, middle)
        return min((low, high), key=lambda width: abs(miss(width)))


ARMS: tuple[PhysicsArm, ...] = (
    PhysicsArm("mlp-matched", "MLP", None),
    PhysicsArm("mlp-large", "MLP, twice the size", None, budget_scale=2.0),
    PhysicsArm("prism-degree1", "PRISM degree 1 (linear)", "gated", degree=1),
    PhysicsArm("prism", "PRISM degree 2", "gated", degree=2),
    PhysicsArm("prism-degree3", "PRISM degree 3", "gated", degree=3),
    PhysicsArm("product", "Ungated product", "product"),
    PhysicsArm("ccp", "CCP (Π-net)", "ccp"),
    PhysicsArm("glu", "GLU", "glu"),
    PhysicsArm("explicit", "Explicit monomials", "explicit"),
)
"""All arms. ``linear`` of ``prism_motor.nn.INTERACTIONS`` is PRISM of degree 1."""


ALIASES = {
    "mlp": "mlp-matched",
    "mlp2x": "mlp-large",
    "prism1": "prism-degree1",
    "prism2": "prism",
    "prism3": "prism-degree3",
}
"""Former names of arms."""


def choose_arms(names: Iterable[str]) -> tuple[PhysicsArm, ...]:
    """Return the arms of these names in the order of :data:`ARMS`; all for no names."""
    by_name = {arm.name: arm for arm in ARMS}
    wanted = {check_choice("arm", ALIASES.get(name, name), by_name) for name in names}
    return tuple(arm for arm in ARMS if arm.name in wanted or not wanted)


_LISTED_PRODUCTS = 10
"""Number of products of a layer to list."""


@dataclass(frozen=True)
class FitJob:
    """One training run."""

    arm: str
    seed: int
    learning_rate: float

    @property
    def key(self) -> str:
        """Name in results.json."""
        return f"{self.arm}/seed{self.seed}/lr{self.learning_rate:g}"

    def __str__(self) -> str:
        return self.key


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


def fit(job: FitJob, arm: PhysicsArm, config: PhysicsConfig, data: Standardised) -> dict[str, Any]:
    """Train and evaluate; return the job's entry for results.json."""
    started = time.perf_counter()
    torch.manual_seed(job.seed)
    x, y = data.train
    network = arm.make(x.shape[1], y.shape[1], config.budget, config.head)
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
    network: nn.Sequential, job: FitJob, config: PhysicsConfig, data: Standardised
) -> list[list[float | None]]:
    """Minimise the squared error with equal weight per target; return the learning curve."""
    x, y = data.train
    weight = _column_weights()
    optimizer = torch.optim.Adam(network.parameters(), lr=job.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda update: learning_rate_factor(update, config.updates)
    )
    shuffler = torch.Generator().manual_seed(job.seed)
    batches = iter(())
    marks = {round(m) for m in np.linspace(0, config.updates, config.curve_points + 1)[1:]}
    curve: list[list[float | None]] = []
    for update in range(1, config.updates + 1):
        rows = next(batches, None)
        if rows is None:
            batches = iter(torch.randperm(len(x), generator=shuffler).split(config.batch))
            rows = next(batches)
        loss = ((network(x[rows]) - y[rows]).square().mean(0) * weight).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if update in marks:
            curve.append([update, overall(unexplained(network, *data.validation))])
    return curve


def learning_rate_factor(update: int, updates: int) -> float:
    """Rise over the first tenth of the updates, then fall to zero along a cosine."""
    rise = min(1.0, (update + 1) / (0.1 * updates))
    return rise * 0.5 * (1 + math.cos(math.pi * update / updates))


def _column_weights() -> Tensor:
    sizes = torch.tensor([target.size for target in TARGETS])
    return (1.0 / sizes / len(sizes)).repeat_interleave(sizes)


@torch.no_grad()
def unexplained(network: nn.Module, x: Tensor, y: Tensor) -> dict[str, float | None]:
    """Return the share of the variance left unexplained, per target: squared error / variance.

    It is 1 - R^2 on these rows; a target of several columns gets their mean, and ``None`` means
    that the network returned a value that is not finite.
    """
    error = (network(x) - y).double().square().mean(0)
    ratio = error / y.double().var(0, correction=0)
    shares = {name: float(ratio[columns].mean()) for name, columns in target_columns().items()}
    return {name: share if math.isfinite(share) else None for name, share in shares.items()}


def overall(shares: dict[str, float | None]) -> float | None:
    """Return the geometric mean over the targets, so that the hardest one does not dominate."""
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
    """Return the strength of each product of two signals after the front: (inputs, inputs).

    The exact second-degree coefficients of every feature, scaled by the norm of the weights with
    which the head reads the feature, as a root of the sum of squares over features. Inputs are
    standardised, so the entries are comparable.
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
