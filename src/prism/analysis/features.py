"""What a frozen actor computes on the way to its action, by name.

=============== ============================================================================
``raw``         the observation history as the policy receives it
``first_order`` the linear stage of the interaction layer: W_1 x + b_1 (residual actor: p_1)
``polynomial``  the interaction features: psi_K (residual actor: p_K)
``conditioner`` what the conditioner gives to the trunk
``hidden_1``    the first hidden layer of the trunk after its activation, and so on
=============== ============================================================================

Actors without a conditioner have ``raw`` and the hidden layers alone; a layer of degree 1 has no
``polynomial``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prism.learn.policy import Policy
from prism.nn.actors import ResidualEncoder
from prism.nn.conditioner import PolynomialConditioner
from prism.nn.factors import FactorLayer

_BATCH = 4096
"""Observations per forward pass."""


def read_features(policy: Policy, observations: np.ndarray | Tensor) -> dict[str, np.ndarray]:
    """Return the activations of a policy's actor on some observations.

    Args:
        policy: The policy; it stays as it is.
        observations: (rows, observations), as the environment gives them.

    Returns:
        Float32 arrays (rows, width) by feature name, from the input to the output.
    """
    batches: list[dict[str, Tensor]] = []
    with torch.inference_mode(), _collect(policy.module) as found:
        for batch in torch.as_tensor(observations).split(_BATCH):
            found["raw"] = batch
            policy.module(batch)
            batches.append(dict(found))
    return {name: torch.cat([b[name] for b in batches]).numpy() for name in found}


def feature_names(policy: Policy) -> list[str]:
    """Return the names that :func:`read_features` gives for a policy."""
    inputs = policy.actor.obs_dim
    return list(read_features(policy, np.zeros((1, inputs), dtype=np.float32)))


@contextmanager
def _collect(module: Any) -> Iterator[dict[str, Tensor]]:
    """Keep what passes through the module in a dictionary while the context lasts."""
    found: dict[str, Tensor] = {}
    handles = [
        part.register_forward_hook(_keep(found, name, pick)) for name, part, pick in _places(module)
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


_Pick = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""From a module, its input and its output to the feature."""


def _keep(found: dict[str, Tensor], name: str, pick: _Pick) -> Callable[..., None]:
    def hook(part: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        found[name] = pick(part, inputs[0], output)

    return hook


def _places(module: Any) -> list[tuple[str, nn.Module, _Pick]]:
    """Say where in a policy module each feature can be read."""
    encoder, trunk = None, module.mlp
    if isinstance(trunk[0], PolynomialConditioner | ResidualEncoder):
        encoder, trunk = trunk
    places = [] if encoder is None else _encoder_places(encoder)
    # rsl_rl shares one activation module among all layers, so a hidden layer is read where it
    # enters the next linear one.
    linears = [part for part in trunk if isinstance(part, nn.Linear)]
    return places + [(f"hidden_{i}", part, _input) for i, part in enumerate(linears[1:], start=1)]


def _encoder_places(encoder: nn.Module) -> list[tuple[str, nn.Module, _Pick]]:
    places: list[tuple[str, nn.Module, _Pick]] = []
    if isinstance(encoder, ResidualEncoder):
        places.append(("first_order", encoder.factors[0], _output))
        if encoder.degree > 1:
            places.append(("polynomial", encoder.branch_out, _input))
    elif isinstance(encoder, PolynomialConditioner):
        layer = encoder.interaction
        if isinstance(layer, FactorLayer):
            places.append(("first_order", layer, _first_factor))
        if layer.degree > 1:
            places.append(("polynomial", layer, _output))
    return [*places, ("conditioner", encoder, _output)]


def _input(part: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return x


def _output(part: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return y


def _first_factor(part: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    assert isinstance(part, FactorLayer)
    return part.factors(x)[0]
