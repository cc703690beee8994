"""The PRISM layer in JAX: one pure function, and a Flax module of either kind.

:func:`polynomial` is :class:`prism_motor.nn.PolynomialLayer` as a function of its arrays, so it
fits any JAX code. Parameters have the names and shapes of the torch layer's state dict and move in
both directions::

    layer = NnxPolynomialLayer(16, 64, rngs=nnx.Rngs(0))        # NNX, like nnx.Linear
    layer.load_state_dict(torch_layer.state_dict())
    torch_layer.load_state_dict(layer.state_dict())

    module = LinenPolynomialLayer(64)                           # Linen, like linen.Dense
    variables = linen_variables(torch_layer.state_dict())       # or module.init(key, x)
    y = module.apply(variables, x)
    torch_layer.load_state_dict(linen_state_dict(variables))

What is read out of a layer (``interactions``, ``expand``) is read from the torch layer.
"""
# Where Flax is not installed, the type checker takes this module for it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra
from prism_motor.nn import PolynomialLayer

try:
    import jax
    import jax.numpy as jnp
    from flax import linen, nnx
except ImportError as error:
    raise missing_extra("prism_motor.integrations.flax", "jax", error) from error


def polynomial(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    gate: jax.Array | None = None,
    *,
    bound: float | None = None,
) -> jax.Array:
    """Apply the recursion of :class:`prism_motor.nn.PolynomialLayer`.

    Args:
        x: (..., in_features).
        weight: (degree, out_features, in_features).
        bias: (degree, out_features), or ``None``.
        gate: (degree - 1, out_features), times the warm-up's scale if there is one; ``None`` for
            degree 1.
        bound: Bounded mode, as in the layer.

    Returns:
        (..., out_features).
    """
    degree, _, in_features = weight.shape
    if x.shape[-1] != in_features:
        raise InputError(f"Expected an input of shape (..., {in_features}), got {list(x.shape)}.")
    stacked = x @ weight.reshape(-1, in_features).T
    if bias is not None:
        stacked = stacked + bias.reshape(-1)
    factors = jnp.split(stacked, degree, axis=-1)
    psi = factors[0]
    if gate is None and degree > 1:
        raise InputError(f"A weight of degree {degree} needs a gate, got None.")
    for k in range(1, degree):
        interaction = gate[k - 1] * factors[k]  # pyright: ignore[reportOptionalSubscript]
        if bound is not None:
            interaction = bound * jnp.tanh(interaction / bound)
        psi = psi * (1 + interaction)
    return psi


def warmup_scale(count: jax.Array, updates: int) -> jax.Array:
    """Return the factor of all gates after ``count`` of ``updates`` updates of warm-up."""
    return jnp.minimum(count / updates, 1.0)


class NnxPolynomialLayer(nnx.Module):
    """:class:`prism_motor.nn.PolynomialLayer` as an NNX module; the arguments are the same.

    A warm-up's count is a ``nnx.Variable`` and no ``nnx.Param``: an optimiser leaves it alone. Call
    :meth:`advance_warmup` once per update.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        degree: int = 2,
        *,
        gate_init: float = 0.01,
        bias: bool = True,
        bound: float | None = None,
        warmup: int = 0,
        rngs: nnx.Rngs,
    ) -> None:
        options = {"gate_init": gate_init, "bias": bias, "bound": bound, "warmup": warmup}
        _check(in_features, out_features, degree, **options)
        self.bound, self.warmup = bound, warmup
        draw = _initialisers(degree, out_features, in_features, gate_init)
        self.weight = nnx.Param(draw["weight"](rngs.params()))
        self.bias = nnx.Param(draw["bias"](rngs.params())) if bias else None
        self.gate = nnx.Param(draw["gate"](rngs.params())) if degree > 1 else None
        self.count = nnx.Variable(jnp.zeros((), jnp.int32)) if warmup else None

    def __call__(self, x: jax.Array) -> jax.Array:
        """Map (..., in_features) to (..., out_features)."""
        gate = None if self.gate is None else self.gate[...]
        if gate is not None and self.count is not None:
            gate = gate * warmup_scale(self.count[...], self.warmup)
        bias = None if self.bias is None else self.bias[...]
        return polynomial(x, self.weight[...], bias, gate, bound=self.bound)

    def advance_warmup(self, updates: int = 1) -> None:
        """Count ``updates`` optimiser updates."""
        if self.count is not None:
            self.count.set_value(self.count[...] + updates)

    def load_state_dict(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        """Take the values of a torch layer of the same sizes."""
        new, old = _to_jax(state_dict), self._variables()
        shapes = {name: value[...].shape for name, value in old.items()}
        given = {name: value.shape for name, value in new.items()}
        if given != shapes:
            raise InputError(f"The layer needs {shapes}, the state dict has {given}.")
        for name, variable in old.items():
            variable.set_value(new[name])

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the values as a torch layer's ``load_state_dict`` takes them."""
        return _to_torch({name: value[...] for name, value in self._variables().items()})

    def _variables(self) -> dict[str, nnx.Variable[Any]]:
        named = {"weight": self.weight, "bias": self.bias, "gate": self.gate, "count": self.count}
        return {name: value for name, value in named.items() if value is not None}


class LinenPolynomialLayer(linen.Module):
    """:class:`prism_motor.nn.PolynomialLayer` as a Linen module.

    A warm-up's count is the variable ``count`` of the collection ``warmup``; add one to it after
    every update.
    """

    features: int
    """Number of product features."""
    degree: int = 2
    """Highest polynomial degree."""
    gate_init: float = 0.01
    """Initial value of every gate."""
    use_bias: bool = True
    """Whether the factors have a constant term."""
    bound: float | None = None
    """Bounded mode."""
    warmup: int = 0
    """Fade the products in over this many updates; 0 is off."""

    @linen.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Map (..., any) to (..., features)."""
        size = x.shape[-1]
        _check(
            size, self.features, self.degree,
            gate_init=self.gate_init, bias=self.use_bias, bound=self.bound, warmup=self.warmup,
        )  # fmt: skip
        draw = _initialisers(self.degree, self.features, size, self.gate_init)
        weight = self.param("weight", draw["weight"])
        bias = self.param("bias", draw["bias"]) if self.use_bias else None
        gate = self.param("gate", draw["gate"]) if self.degree > 1 else None
        if self.warmup:
            count = self.variable("warmup", "count", lambda: jnp.zeros((), jnp.int32))
            if gate is not None:
                gate = gate * warmup_scale(count.value, self.warmup)
        return polynomial(x, weight, bias, gate, bound=self.bound)


def linen_variables(state_dict: Mapping[str, torch.Tensor]) -> dict[str, dict[str, jax.Array]]:
    """Return a torch layer's values as the variables of :class:`LinenPolynomialLayer`."""
    arrays = _to_jax(state_dict)
    count = arrays.pop("count", None)
    return {"params": arrays} | ({} if count is None else {"warmup": {"count": count}})


def linen_state_dict(variables: Mapping[str, Mapping[str, jax.Array]]) -> dict[str, torch.Tensor]:
    """Return variables of :class:`LinenPolynomialLayer` as a torch layer's state dict."""
    return _to_torch({**variables["params"], **variables.get("warmup", {})})


# The torch layer --------------------------------------------------------------------------------

_NAMES = {"weight": "weight", "bias": "bias", "gate": "gate", "warmup.count": "count"}
"""Our names of the arrays, by their names in the torch layer's state dict."""


def _to_jax(state_dict: Mapping[str, torch.Tensor]) -> dict[str, jax.Array]:
    if "weight" not in state_dict or not set(state_dict) <= set(_NAMES):
        raise InputError(
            f"Expected the state dict of one PolynomialLayer ({', '.join(_NAMES)}), got "
            f"{', '.join(state_dict) or 'nothing'}. Of a larger network, take the layer's own."
        )
    found: dict[str, jax.Array] = {}
    for name, value in state_dict.items():
        tensor = value.detach().cpu()
        half = tensor.dtype is torch.bfloat16  # numpy has no such type
        array = jnp.array((tensor.float() if half else tensor).numpy())
        found[_NAMES[name]] = array.astype(jnp.bfloat16) if half else array
    if "count" in found:  # JAX has 64 bits only where they are switched on
        found["count"] = found["count"].astype(jnp.int32)
    return found


def _to_torch(arrays: Mapping[str, jax.Array]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for name, ours in _NAMES.items():
        if ours in arrays:
            half = arrays[ours].dtype == jnp.bfloat16
            tensor = torch.tensor(
                np.asarray(arrays[ours].astype(jnp.float32) if half else arrays[ours])
            )
            found[name] = tensor.bfloat16() if half else tensor
    if "warmup.count" in found:
        found["warmup.count"] = found["warmup.count"].to(torch.int64)
    return found


def _check(in_features: int, out_features: int, degree: int, **options: Any) -> None:
    """Raise what the torch layer raises."""
    PolynomialLayer(in_features, out_features, degree, device="meta", **options)


def _initialisers(
    degree: int, out_features: int, in_features: int, gate_init: float
) -> dict[str, Callable[[jax.Array], jax.Array]]:
    """Draw what the torch layer draws, from the same distributions."""
    limit = in_features**-0.5

    def weight(key: jax.Array) -> jax.Array:
        shape = (degree, out_features, in_features)
        return jax.random.uniform(key, shape, minval=-limit, maxval=limit)

    def bias(key: jax.Array) -> jax.Array:
        first = jax.random.uniform(key, (1, out_features), minval=-limit, maxval=limit)
        return jnp.concatenate([first, jnp.zeros((degree - 1, out_features))])

    def gate(_: jax.Array) -> jax.Array:
        return jnp.full((degree - 1, out_features), gate_init)

    return {"weight": weight, "bias": bias, "gate": gate}
