"""The arms of the comparison, and training one of them with one seed and learning rate."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor.nn import PolynomialLayer, count_parameters
from prism_motor.studies import networks
from prism_motor.studies.fitting import (
    Member,
    Standardised,
    overall,
    train_together,
    unexplained,
)
from prism_motor.studies.networks import StudyArm
from prism_motor.studies.physics.robot import TARGETS, signal_names, target_columns

if TYPE_CHECKING:
    from prism_motor.studies.physics.config import PhysicsConfig

ARMS: tuple[StudyArm, ...] = (
    StudyArm("mlp-matched", "MLP", None),
    StudyArm("mlp-large", "MLP, twice the size", None, budget_scale=2.0),
    StudyArm("prism-degree1", "PRISM degree 1 (linear)", "gated", degree=1),
    StudyArm("prism", "PRISM degree 2", "gated", degree=2),
    StudyArm("prism-degree3", "PRISM degree 3", "gated", degree=3),
    StudyArm("product", "Ungated product", "product"),
    StudyArm("ccp", "CCP (Π-net)", "ccp"),
    StudyArm("glu", "GLU", "glu"),
    StudyArm("explicit", "Explicit monomials", "explicit"),
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


def choose_arms(names: Iterable[str]) -> tuple[StudyArm, ...]:
    """Return the arms of these names in the order of :data:`ARMS`; all for no names."""
    return networks.choose_arms(ARMS, names, ALIASES)


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


def fit(job: FitJob, arm: StudyArm, config: PhysicsConfig, data: Standardised) -> dict[str, Any]:
    """Train and evaluate; return the job's entry for results.json."""
    started = time.perf_counter()
    torch.manual_seed(job.seed)
    x, y = data.train
    network = arm.make(x.shape[1], y.shape[1], config.budget, config.head)
    curve = _train(network, job, config, data)
    result: dict[str, Any] = {
        **asdict(job),
        "parameters": count_parameters(network),
        "validation": _shares(network, data.validation),
        "test": _shares(network, data.test),
        "extrapolation": _shares(network, data.extrapolation),
        "curve": curve,
        "seconds": round(time.perf_counter() - started, 3),
    }
    if job.seed == config.reported_seeds[0]:
        rows = len(data.test[0]) // config.test_episodes
        result["trace"] = _first_rows(network, data, rows)
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
    curve: list[list[float | None]] = []

    def note(update: int) -> None:
        curve.append([update, overall(_shares(network, data.validation))])

    marks = {round(m) for m in np.linspace(0, config.updates, config.curve_points + 1)[1:]}
    train_together(
        [Member(network, data, job.seed, job.learning_rate)],
        updates=config.updates,
        batch=config.batch,
        weight=_column_weights(),
        marks={update: partial(note, update) for update in marks},
    )
    return curve


def _shares(network: nn.Module, rows: tuple[Tensor, Tensor]) -> dict[str, float | None]:
    return unexplained(network, *rows, target_columns())


def _column_weights() -> Tensor:
    sizes = torch.tensor([target.size for target in TARGETS])
    return (1.0 / sizes / len(sizes)).repeat_interleave(sizes)


@torch.no_grad()
def _first_rows(network: nn.Module, data: Standardised, rows: int) -> list[list[float | None]]:
    """Predict the first test episode in physical units, to show what an error looks like."""
    predicted = data.in_units(network(data.test[0][:rows]))
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
