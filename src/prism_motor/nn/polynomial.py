"""The PRISM layer: products of learned projections, gated from near zero."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError, InputTypeError
from prism_motor.nn.factors import FactorLayer
from prism_motor.nn.reading import Interaction, strongest_products, strongest_read
from prism_motor.nn.warmup import Warmup


class PolynomialLayer(FactorLayer):
    r"""Linear layer with learned products of its input up to a given degree.

    .. code-block:: text

        psi_1 = W_1 x + b_1
        psi_k = psi_{k-1} * (1 + gate_k * (W_k x + b_k)),    k = 2..degree

    The gates are learned per feature and start near zero, so the layer starts as a linear map and
    grows the products that help. ``degree=1`` is exactly a linear map; ``gate_init=0`` starts
    exactly at the first factor.

    Initialisation: the first factor is drawn exactly as ``nn.Linear`` draws its own (the same
    seed gives the same numbers), later factors likewise with zero bias. They are independent,
    so for an input of mean square m the output has mean zero and the standard deviation given by
    :meth:`initial_std`::

        std^2 = (m + 1/d) / 3 * (1 + gate_init^2 * m / 3)^(degree - 1)

    (without the 1/d when ``bias=False``). With the default gates the second factor is 1 + 3e-5 m:
    the scale of a plain linear layer at every degree.

    Args:
        in_features: Size d of the input's last dimension.
        out_features: Number r of product features.
        degree: Highest polynomial degree K, at least 1.
        gate_init: Initial value of every gate: 0.01 as in the paper; 1 begins with products and
            learns them better where the answer is known to be one.
        bias: Whether the factors have a constant term.
        bound: Safe mode for half precision. Each multiplier 1 + t becomes
            1 + bound * tanh(t / bound), so that |psi_K| <= (1 + bound)^(K-1) |psi_1| whatever the
            input. Nearly the same function while |t| is small compared with the bound; no longer a
            polynomial, so :meth:`expand` raises. 1.0 is a good value.
        warmup: Fade the products in over this many updates; 0 is off. See
                :mod:`prism_motor.nn.warmup`.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape: (..., in_features) -> (..., out_features). The dtype is what ``nn.Linear`` would return,
    also under autocast, where the products are computed in float32.

    State dict: ``weight`` (K, r, d), ``bias`` (K, r), ``gate`` (K-1, r; absent for K = 1) and, with
    a warm-up, ``warmup.count`` (int64 scalar).
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, degree, bias=bias, device=device, dtype=dtype)
        if not math.isfinite(gate_init):
            raise InputError(f"PolynomialLayer: gate_init must be finite, got {gate_init}.")
        if bound is not None and not (math.isfinite(bound) and bound > 0):
            raise InputError(
                f"PolynomialLayer: bound must be a positive number or None, got {bound}."
            )
        self.gate_init = gate_init
        self.bound = bound
        kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.gate: nn.Parameter | None
        self.register_parameter(
            "gate",
            nn.Parameter(torch.empty(degree - 1, out_features, **kwargs)) if degree > 1 else None,
        )
        self.warmup = Warmup(warmup, device) if warmup else None
        self.reset_parameters()

    @classmethod
    def from_linear(
        cls,
        linear: nn.Linear,
        degree: int = 2,
        *,
        gate_init: float = 0.01,
        bound: float | None = None,
        warmup: int = 0,
    ) -> "PolynomialLayer":
        """Use a trained ``nn.Linear`` as the first factor; ``gate_init=0`` keeps its output.

        With this, PRISM enters an existing policy in one line::

            policy.state_proj = PolynomialLayer.from_linear(policy.state_proj)
        """
        if not isinstance(linear, nn.Linear):
            raise InputTypeError(f"linear must be an nn.Linear, got {type(linear).__name__}.")
        layer = cls(
            linear.in_features,
            linear.out_features,
            degree,
            gate_init=gate_init,
            bias=linear.bias is not None,
            bound=bound,
            warmup=warmup,
            device=linear.weight.device,
            dtype=linear.weight.dtype,
        )
        with torch.no_grad():
            layer.weight[0].copy_(linear.weight)
            if layer.bias is not None:
                layer.bias[0].copy_(linear.bias)
        return layer

    def reset_parameters(self) -> None:
        """Re-draw the weights, zero the later biases, set the gates and restart the warm-up."""
        super().reset_parameters()
        if self.gate is not None:
            nn.init.constant_(self.gate, self.gate_init)
        if self.warmup is not None:
            self.warmup.count.zero_()

    def initial_std(self, input_mean_square: float = 1.0) -> float:
        """Return the output's standard deviation at initialisation, over random weights."""
        slope_variance = input_mean_square / 3
        bias_variance = 0.0 if self.bias is None else 1 / (3 * self.in_features)
        growth = (1 + self.gate_init**2 * slope_variance) ** (self.degree - 1)
        return math.sqrt((slope_variance + bias_variance) * growth)

    def effective_gate(self) -> Tensor | None:
        """Return the gates times the warm-up scale; ``None`` for degree 1."""
        gate = self.gate
        if gate is None or self.warmup is None:
            return gate
        return gate * self.warmup().to(gate.dtype)

    def combine(self, factors: list[Tensor]) -> Tensor:
        """Apply the recursion of the class docstring to the affine factors."""
        psi = factors[0]
        dtype = psi.dtype
        gate = self.effective_gate()
        if gate is not None:
            gates = gate.unbind(0)
            for k in range(1, self.degree):
                psi = psi * (1 + self._bounded(gates[k - 1] * self.scale_factor(factors[k])))
        # Under autocast the gates stay float32, so the products are; nn.Linear returns half.
        return psi if psi.dtype == dtype else psi.to(dtype)

    def scale_factor(self, factor: Tensor) -> Tensor:
        """Return a later factor as it is multiplied; for subclasses that scale it."""
        return factor

    def _bounded(self, interaction: Tensor) -> Tensor:
        bound = self.bound
        if bound is None:
            return interaction
        return bound * torch.tanh(interaction / bound)

    def affine_factors(self) -> tuple[Tensor, Tensor]:
        """Return (constant, linear) with output = prod_k (constant[k] + linear[k] @ x)."""
        if self.bound is not None:
            raise InputTypeError(
                f"A layer with bound={self.bound} is not a polynomial, so it has no exact "
                "expansion. Build it with bound=None to expand it."
            )
        linear = self.weight.clone()
        constant = torch.zeros_like(linear[..., 0]) if self.bias is None else self.bias.clone()
        gate = self.effective_gate()
        if gate is not None:
            linear[1:] *= gate.unsqueeze(-1)
            constant[1:] = 1 + gate * constant[1:]
        return constant, linear

    def interactions(
        self,
        names: Sequence[str] | None = None,
        top: int | None = 10,
        *,
        input_scale: Tensor | Sequence[float] | None = None,
        readout: Tensor | None = None,
    ) -> list[Interaction]:
        """List the strongest learned products by input name, strongest first.

        Each feature yields one entry for every product it contains: (1, k) pairs and, from degree 3
        on, the longer ones. Branches are named independently by their largest weight, so a square
        (a variable with itself) stays visible.

        With ``readout``, the products are those that the next layer reads: every product of inputs
        once, its exact coefficients added up over all features. One product is often spread over
        many features, and features that nobody reads count nothing.

        Args:
            names: One name per input; ``frame_names`` makes them for histories. Default ``x0, x1``.
            top: How many to return; ``None`` for all.
            input_scale: Typical size of each input (its standard deviation), so that weights of
                inputs in different units can be compared. Default: all equal.
            readout: Weight of the linear layer that reads the features, (rows, out_features), or
                some of its rows. An activation in between is taken as the identity.
        """
        gate = self.effective_gate()
        if gate is None:
            return []
        if readout is not None:
            constant, linear = (factor.detach() for factor in self.affine_factors())
            return strongest_read(constant, linear, readout, names, top, input_scale)
        return strongest_products(self.weight.detach(), gate.detach(), names, top, input_scale)

    @contextmanager
    def ablate(self, feature: int) -> Iterator[None]:
        """Within this context, ``feature`` loses its products and keeps its first-order path."""
        if self.gate is None:
            raise InputError("A layer of degree 1 has no interaction to ablate.")
        if not -self.out_features <= feature < self.out_features:
            raise IndexError(
                f"feature must be in [0, {self.out_features}), got {feature}: the layer has "
                f"{self.out_features} features."
            )
        with torch.no_grad():
            kept = self.gate[:, feature].clone()
            self.gate[:, feature] = 0
        try:
            yield
        finally:
            with torch.no_grad():
                self.gate[:, feature] = kept

    def extra_repr(self) -> str:  # noqa: D102
        bound = "" if self.bound is None else f", bound={self.bound}"
        return f"{super().extra_repr()}, gate_init={self.gate_init}{bound}"
