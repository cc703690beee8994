"""What a frozen actor computes on the way to its action, by name.

=============== ============================================================================
``raw``         the observation history as the policy receives it
``first_order`` the linear stage of the interaction layer: W_1 x + b_1 (residual actor: p_1)
``polynomial``  the interaction features: psi_K (residual actor: p_K)
``conditioner`` the conditioner's output, which the trunk receives, with what by-passes it
``hidden_1``    the first hidden layer of the trunk after its activation, and so on
=============== ============================================================================

Actors without a conditioner have only ``raw`` and the hidden layers; a layer of degree 1 has no
``polynomial``. In ``prism-after`` the interaction layer comes after the last hidden one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor.nn import (
    Bypass,
    ExplicitLayer,
    FactorLayer,
    PolynomialConditioner,
    ResidualEncoder,
)
from prism_motor.nn.trunk import layer_after

if TYPE_CHECKING:
    from prism_motor.locomotion.policy import WalkingPolicy

_BATCH = 4096
"""Observations per forward pass."""


def read_features(
    policy: WalkingPolicy, observations: np.ndarray | Tensor
) -> dict[str, np.ndarray]:
    """Return the activations of a policy's actor on some observations.

    Args:
        policy: The policy; it is not changed.
        observations: (rows, observations), as the environment gives them.

    Returns:
        Float32 arrays (rows, width) by feature name, from the input to the output.
    """
    batches: list[dict[str, Tensor]] = []
    with torch.inference_mode(), _collect(policy.module) as found:
        for batch in torch.as_tensor(observations).split(_BATCH):
            found["raw"] = batch
            policy.module(batch.to(policy.device))
            batches.append({name: values.cpu() for name, values in found.items()})
    return {name: torch.cat([b[name] for b in batches]).numpy() for name in found}


def read_conditioner(conditioner: nn.Module | None, inputs: Tensor) -> dict[str, np.ndarray]:
    """Return the activations of just a conditioner, as in LeRobot's policies.

    Args:
        conditioner: The conditioner; without one its output is its input.
        inputs: (rows, inputs), normalised as in training.

    Returns:
        Float32 arrays (rows, width): ``first_order`` and ``polynomial`` of a
        :class:`PolynomialConditioner`, or the hidden layers of any other as ``latent_1`` and so
        on, and the output as ``conditioner``.
    """
    if conditioner is None:
        return {"conditioner": inputs.cpu().numpy()}
    found: dict[str, Tensor] = {}
    places = _encoder_places(conditioner)
    with torch.inference_mode(), _hooked(places, found):
        conditioner(inputs.to(next(conditioner.parameters()).device))
    return {name: found[name].cpu().numpy() for name, _, _ in places}


def feature_names(policy: WalkingPolicy) -> list[str]:
    """Return the names that :func:`read_features` gives for a policy."""
    inputs = policy.actor.obs_dim
    return list(read_features(policy, np.zeros((1, inputs), dtype=np.float32)))


@contextmanager
def _collect(module: Any) -> Iterator[dict[str, Tensor]]:
    """Collect what passes through the module in a dictionary within this context."""
    found: dict[str, Tensor] = {}
    with _hooked(_places(module), found):
        yield found


_Pick = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""From a module, its input and its output to the feature."""

_Place = tuple[str, nn.Module, _Pick]
"""Name of a feature, and where it is read."""


@contextmanager
def _hooked(places: Sequence[_Place], found: dict[str, Tensor]) -> Iterator[None]:
    """Write what passes the given places to ``found`` within this context."""
    handles = [part.register_forward_hook(_keep(found, name, pick)) for name, part, pick in places]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _keep(found: dict[str, Tensor], name: str, pick: _Pick) -> Callable[..., None]:
    def hook(part: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        found[name] = pick(part, inputs[0], output)

    return hook


def _places(module: Any) -> list[_Place]:
    """Return where in a policy module each feature can be read."""
    encoder, trunk = None, module.mlp
    if isinstance(trunk[0], PolynomialConditioner | ResidualEncoder | Bypass):
        encoder, trunk = trunk
    places = [] if encoder is None else _encoder_places(encoder)
    # rsl_rl shares one activation module among all layers, so a hidden layer is read where it
    # enters the next one.
    places += _hidden_places(trunk)
    after = layer_after(trunk)
    if isinstance(after, FactorLayer):
        last, *_ = places.pop()
        places += [(last, after, _input), *_layer_places(after)]
    return places


def _hidden_places(layers: nn.Module, name: str = "hidden") -> list[_Place]:
    linears = [part for part in layers.modules() if isinstance(part, nn.Linear)]
    return [(f"{name}_{i}", part, _input) for i, part in enumerate(linears[1:], start=1)]


def _encoder_places(encoder: nn.Module) -> list[_Place]:
    places: list[_Place] = []
    inner = encoder.encoder if isinstance(encoder, Bypass) else encoder
    if isinstance(inner, ResidualEncoder):
        places.append(("first_order", inner.factors[0], _output))
        if inner.degree > 1:
            places.append(("polynomial", inner.branch_out, _input))
    elif isinstance(inner, PolynomialConditioner):
        places += _layer_places(inner.interaction)
    else:
        places += _hidden_places(inner, "latent")
    return [*places, ("conditioner", encoder, _output)]


def _layer_places(layer: FactorLayer | ExplicitLayer) -> list[_Place]:
    places: list[_Place] = []
    if isinstance(layer, FactorLayer):
        places.append(("first_order", layer, _first_factor))
    if layer.degree > 1:
        places.append(("polynomial", layer, _output))
    return places


def _input(part: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return x


def _output(part: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return y


def _first_factor(part: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    assert isinstance(part, FactorLayer)
    return part.factors(x)[0]
