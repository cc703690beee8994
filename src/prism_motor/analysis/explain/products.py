"""The learned products of a policy one by one: their factors, values, and the policy without them.

A product is what one latent feature adds to its first-order path. In a gated layer of degree 2 that
is ``gate * u * v``; at higher degrees all products of a feature are taken together. In the residual
actors every stage k = 2..K has its own, ``A_k(h) * S_{k-1}(p_{k-1})``, times its gate if there are
gates. The factors of ``prism-after`` are affine maps of the last hidden features, so its products
are named by the inputs that move these features most, see :func:`.names.branch_forms`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.nn import Bypass, PolynomialConditioner, PolynomialLayer, ResidualEncoder
from prism_motor.nn.trunk import layer_after

if TYPE_CHECKING:
    from prism_motor.locomotion.policy import WalkingPolicy


@dataclass(frozen=True)
class Parts:
    """What the encoder computes from observations before any product is formed."""

    inputs: Tensor
    """Normalised observations, (N, inputs)."""
    factors: tuple[Tensor, ...]
    """Affine maps of the input, or of hidden features, that are multiplied, (N, latent) each."""


class Products(ABC):
    """The products of a policy's polynomial.

    Args:
        latent: Width of the interaction stage.
        stages: How many products each latent feature takes part in.
        device: Where they are computed.

    Attributes:
        count: Number of products.
        affine: Whether the factors are affine in the observation.
        bypass: What leads some inputs past the polynomial, if anything.
    """

    affine = True
    bypass: Bypass | None = None

    def __init__(self, latent: int, stages: int = 1, *, device: torch.device) -> None:
        self.latent, self.stages = latent, stages
        self.count = latent * stages
        self.device = device

    def label(self, product: int) -> str:
        """Return the label of the feature that a product belongs to."""
        stage, feature = divmod(product, self.latent)
        return f"{feature}" if self.stages == 1 else f"{feature}, stage {stage + 2}"

    @abstractmethod
    def read(self, observations: Tensor) -> Parts:
        """Compute what the products are made of."""

    @abstractmethod
    def targets(self, parts: Parts, features: Tensor) -> Tensor:
        """Return the joint targets that interaction features lead to, rad.

        The reference motion or default pose that the action is added to is left out.
        """

    @abstractmethod
    def first_order(self, parts: Parts) -> Tensor:
        """Return the features without any product, (N, latent)."""

    @abstractmethod
    def features(self, parts: Parts, keep: Tensor | None = None) -> Tensor:
        """Return the interaction features, (N, latent).

        Args:
            parts: From :meth:`read`.
            keep: Factor on every product, (..., count): zeros remove them. Default: all ones.
        """

    @abstractmethod
    def values(self, parts: Parts) -> Tensor:
        """Return the value of every product, (N, count)."""

    @abstractmethod
    def branches(self, parts: Parts) -> Tensor:
        """Return the forms that make each product when multiplied, (N, branches, count).

        For a gated layer these are u, 1 + gate_2 v, ...; their first-order parts name the product.
        """

    @abstractmethod
    def gates(self) -> tuple[Tensor, float] | None:
        """Return the gates in force and the value they started from; ``None`` without gates."""


class WalkingProducts(Products):
    """The products of a walking policy; make one with :func:`products_of`."""

    def _take(self, policy: WalkingPolicy) -> None:
        """Take note of what is around the products; the policy is not changed."""
        self.actor: Any = policy.actor
        encoder = self.actor.encoder
        self.bypass = encoder if isinstance(encoder, Bypass) else None
        self.action = policy.config.task.actions

    def read(self, observations: Tensor) -> Parts:
        """Compute what the products are made of."""
        inputs = self.actor.obs_normalizer(observations.to(self.device))
        return Parts(inputs, tuple(self._factors(self._seen(inputs))))

    def targets(self, parts: Parts, features: Tensor) -> Tensor:
        """Return the joint targets that interaction features lead to, rad."""
        action = self._act(parts, features)
        return self.action.scale * action.clamp(-self.action.clip, self.action.clip)

    def _seen(self, inputs: Tensor) -> Tensor:
        """Return the inputs that do not by-pass the polynomial."""
        return inputs if self.bypass is None else self.bypass.select(inputs)

    def _act(self, parts: Parts, features: Tensor) -> Tensor:
        """Return the action that interaction features lead to."""
        encoded = self._encode(parts, features)
        if self.bypass is not None:
            # One observation may go with several features.
            encoded = self.bypass.join(encoded, parts.inputs.expand(*encoded.shape[:-1], -1))
        return self.actor.mlp(encoded)

    @abstractmethod
    def _factors(self, inputs: Tensor) -> list[Tensor]: ...

    @abstractmethod
    def _encode(self, parts: Parts, features: Tensor) -> Tensor: ...


class LayerProducts(Products):
    """Products of a :class:`prism_motor.nn.PolynomialLayer`, whatever is around it.

    Args:
        layer: The layer.
        device: Where they are computed.
    """

    def __init__(self, layer: PolynomialLayer, device: torch.device) -> None:
        super().__init__(layer.out_features, device=device)
        self.layer = layer
        gate = layer.effective_gate()
        assert gate is not None
        self._gate = gate.detach()

    def first_order(self, parts: Parts) -> Tensor:
        """Return u."""
        return parts.factors[0]

    def features(self, parts: Parts, keep: Tensor | None = None) -> Tensor:
        """Return psi, with every product scaled."""
        if keep is None:
            return self.layer.combine(list(parts.factors))
        return parts.factors[0] + keep * self.values(parts)

    def values(self, parts: Parts) -> Tensor:
        """Return psi - u."""
        return self.layer.combine(list(parts.factors)) - parts.factors[0]

    def branches(self, parts: Parts) -> Tensor:
        """Return u and the later factors with their gates and ones."""
        first, *later = parts.factors
        rest = [1 + gate * factor for gate, factor in zip(self._gate, later, strict=True)]
        return torch.stack([first, *rest], dim=-2)

    def gates(self) -> tuple[Tensor, float]:
        """Return the gates, warm-up included."""
        return self._gate.cpu(), self.layer.gate_init


class GatedProducts(LayerProducts, WalkingProducts):
    """Products of a :class:`prism_motor.nn.PolynomialLayer` in a walking actor."""

    def __init__(self, policy: WalkingPolicy, layer: PolynomialLayer) -> None:
        LayerProducts.__init__(self, layer, policy.device)
        self._take(policy)

    def _factors(self, inputs: Tensor) -> list[Tensor]:
        return self.layer.factors(inputs)

    def _encode(self, parts: Parts, features: Tensor) -> Tensor:
        return _inner(self.actor.encoder).projection(features)


class AfterProducts(GatedProducts):
    """Products of a polynomial behind the hidden layers of an MLP."""

    affine = False

    def _factors(self, inputs: Tensor) -> list[Tensor]:
        *hidden_layers, _ = self.actor.mlp
        for part in hidden_layers:
            inputs = part(inputs)
        return self.layer.factors(inputs)

    def _act(self, parts: Parts, features: Tensor) -> Tensor:
        return self.actor.mlp[-1][1](features)


class ResidualProducts(WalkingProducts):
    """Products of a :class:`prism_motor.nn.ResidualEncoder`, stage by stage."""

    def __init__(self, policy: WalkingPolicy, encoder: ResidualEncoder) -> None:
        latent = encoder.branch_out.in_features
        super().__init__(latent, encoder.degree - 1, device=policy.device)
        self._take(policy)
        self.encoder = encoder
        self._gate = None if encoder.gate is None else encoder.gate.detach()

    def _factors(self, inputs: Tensor) -> list[Tensor]:
        lifted = self.encoder.lift(inputs)
        first, *later = (factor(lifted) for factor in self.encoder.factors)
        if self._gate is not None:
            later = [gate * factor for gate, factor in zip(self._gate, later, strict=True)]
        return [first, *later]

    def _encode(self, parts: Parts, features: Tensor) -> Tensor:
        branch = self.encoder.branch_out(features)
        if self.encoder.warmup is not None:
            branch = branch * self.encoder.warmup().to(branch.dtype)
        return self.encoder.activation(self.encoder.skip(self._seen(parts.inputs)) + branch)

    def first_order(self, parts: Parts) -> Tensor:
        """Return p_1."""
        return parts.factors[0]

    def features(self, parts: Parts, keep: Tensor | None = None) -> Tensor:
        """Return p_K; later stages see what is left of the earlier ones."""
        kept = [None] * self.stages if keep is None else keep.split(self.latent, dim=-1)
        total = parts.factors[0]
        for factor, state, share in zip(parts.factors[1:], self.encoder.states, kept, strict=True):
            product = factor * state(total)
            total = total + (product if share is None else share * product)
        return total

    def values(self, parts: Parts) -> Tensor:
        """Return the products of all stages."""
        one, other = self.branches(parts).unbind(-2)
        return one * other

    def branches(self, parts: Parts) -> Tensor:
        """Return A_k(h), gates included, and S_{k-1}(p_{k-1}) of all stages."""
        total, found = parts.factors[0], []
        for factor, state in zip(parts.factors[1:], self.encoder.states, strict=True):
            other = state(total)
            found.append(torch.stack([factor, other], dim=-2))
            total = total + factor * other
        return torch.cat(found, dim=-1)

    def gates(self) -> tuple[Tensor, float] | None:
        """Return the gates, if there are any."""
        if self._gate is None or self.encoder.gate_init is None:
            return None
        return self._gate.cpu(), self.encoder.gate_init


def products_of(policy: WalkingPolicy) -> WalkingProducts:
    """Return the products of a policy, or raise and say why it has none."""
    actor: Any = policy.actor
    encoder = _inner(getattr(actor, "encoder", None))
    if isinstance(encoder, ResidualEncoder) and encoder.degree > 1:
        return ResidualProducts(policy, encoder)
    after = layer_after(actor.mlp)
    layer = encoder.interaction if isinstance(encoder, PolynomialConditioner) else after
    if isinstance(layer, PolynomialLayer) and layer.degree > 1 and layer.bound is None:
        return GatedProducts(policy, layer) if after is None else AfterProducts(policy, layer)
    if encoder is None:
        reason = "a plain MLP forms no explicit products"
    elif getattr(layer, "degree", getattr(encoder, "degree", None)) == 1:
        reason = "a layer of degree 1 is linear"
    elif isinstance(layer, PolynomialLayer):
        reason = f"a layer with bound={layer.bound} is not a polynomial"
    else:
        reason = f"products of interaction={policy.config.actor.interaction!r} are not gated"  # pyright: ignore[reportAttributeAccessIssue]
    raise InputError(
        f"The policy ({policy.config.arm}) has no learned products to explain: {reason}. Give a "
        "run of a prism actor (prism, prism-residual, ...) with a degree of at least 2."
    )


def _inner(encoder: Any) -> Any:
    """Return the polynomial encoder inside a by-pass."""
    return encoder.encoder if isinstance(encoder, Bypass) else encoder
