"""Named alternatives to the PRISM layer, with its interface, for fair comparisons.

Each is built as ``Layer(in_features, out_features, degree, bias=, device=, dtype=)`` and maps
(..., in_features) to (..., out_features). :func:`make_interaction` builds them by name.
"""

import math
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prism_motor._checks import InputError, InputTypeError, check_choice, check_degree, check_size
from prism_motor.nn.factors import FactorLayer
from prism_motor.nn.polynomial import PolynomialLayer


class ScaledPolynomialLayer(PolynomialLayer):
    """:class:`PolynomialLayer` whose later factors are divided by their root mean square.

    The mean is over the features, so the layer has the same parameters. However large weights or
    inputs grow, an open gate then multiplies by 1 + something of size one, which keeps products
    tame beyond the range of training. It is no polynomial, so :meth:`expand` raises.
    """

    def scale_factor(self, factor: Tensor) -> Tensor:
        """Divide by the root mean square over the features."""
        return factor * (factor.square().mean(-1, keepdim=True) + 1e-6).rsqrt()

    def affine_factors(self) -> tuple[Tensor, Tensor]:
        """Refuse: the factors are divided by what depends on the input."""
        raise InputTypeError(
            "ScaledPolynomialLayer divides factors by their root mean square, so it is not a "
            "polynomial and cannot be expanded or pruned. Use PolynomialLayer for that."
        )


class LinearLayer(FactorLayer):
    """Plain linear map: the degree-1 member of the family, ``nn.Linear`` in our layout."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        degree: int = 1,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if degree != 1:
            raise InputError(
                f"LinearLayer: degree must be 1, got {degree!r}. For products use 'gated'."
            )
        super().__init__(in_features, out_features, 1, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    def combine(self, factors: list[Tensor]) -> Tensor:
        """Return the only factor."""
        return factors[0]

    def affine_factors(self) -> tuple[Tensor, Tensor]:
        """Return the map itself."""
        constant = torch.zeros_like(self.weight[..., 0]) if self.bias is None else self.bias
        return constant, self.weight


class ProductLayer(FactorLayer):
    """Ungated product ``prod_k (W_k x + b_k)``; at degree 2 the bilinear gated linear unit.

    It has no first-order path of its own: lower degrees come only from the biases, which here all
    start as in ``nn.Linear`` (with zero biases in the later factors, the output would be an exact
    monomial of full degree).
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        degree: int = 2,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, degree, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every factor as ``nn.Linear`` does, biases included."""
        super().reset_parameters()
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features)
            nn.init.uniform_(self.bias, -bound, bound)

    def combine(self, factors: list[Tensor]) -> Tensor:
        """Multiply the factors."""
        product = factors[0]
        for k in range(1, self.degree):
            product = product * factors[k]
        return product

    def affine_factors(self) -> tuple[Tensor, Tensor]:
        """Return the factors themselves."""
        constant = torch.zeros_like(self.weight[..., 0]) if self.bias is None else self.bias
        return constant, self.weight


class GLULayer(FactorLayer):
    """Gated linear unit ``(W_1 x + b_1) * prod_k sigmoid(W_k x + b_k)`` (Dauphin et al., 2017)."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        degree: int = 2,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, degree, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    def combine(self, factors: list[Tensor]) -> Tensor:
        """Gate the first factor by the sigmoids of the others."""
        gated = factors[0]
        for k in range(1, self.degree):
            gated = gated * torch.sigmoid(factors[k])
        return gated


class CCPLayer(FactorLayer):
    """Pi-Net's coupled CP decomposition (Chrysos et al., 2020): all gates one, then a linear map.

    ``h_1 = U_1 x; h_k = h_{k-1} * (1 + U_k x); y = C h_K + c``. The factors carry no bias, as in
    the original; ``bias`` is that of the output map. ``rank`` is fixed to ``out_features``.

    State dict: ``weight`` (degree, out, in), ``output.weight`` (out, out), ``output.bias`` (out).
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        degree: int = 2,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, degree, bias=False, device=device, dtype=dtype)
        self.output = nn.Linear(out_features, out_features, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the factors and the output map as ``nn.Linear`` does."""
        super().reset_parameters()
        self.output.reset_parameters()

    def combine(self, factors: list[Tensor]) -> Tensor:
        """Multiply with all gates one, then map."""
        product = factors[0]
        for k in range(1, self.degree):
            product = product * (1 + factors[k])
        return self.output(product)


class ExplicitLayer(nn.Module):
    """Every monomial up to ``degree`` as a feature, then a linear map.

    The number of monomials is C(in_features + degree, degree) - 1, so this is for small inputs. It
    refuses sizes above ``max_monomials`` before it allocates anything.

    State dict: ``linear.weight`` (out, monomials), ``linear.bias`` (out).
    """

    in_features: Final[int]
    out_features: Final[int]
    degree: Final[int]
    indices: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        degree: int = 2,
        *,
        bias: bool = True,
        max_monomials: int = 20_000,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = check_size("ExplicitLayer", "in_features", in_features)
        self.out_features = check_size("ExplicitLayer", "out_features", out_features)
        self.degree = check_degree("ExplicitLayer", degree)
        monomials = math.comb(in_features + degree, degree) - 1
        if monomials > max_monomials:
            gated = (in_features + 1) * out_features * degree + out_features * (degree - 1)
            raise InputError(
                f"ExplicitLayer: {in_features} inputs at degree {degree} make {monomials:,} "
                f"monomials and {monomials * out_features:,} weights, above the limit of "
                f"{max_monomials:,} monomials. PolynomialLayer does the same degree with "
                f"{gated:,} parameters; or raise max_monomials if you have the memory."
            )
        # Index 0 is a constant one in front of the input, so lower degrees are the same gather.
        multisets = torch.combinations(
            torch.arange(in_features + 1, device=device), degree, with_replacement=True
        )[1:]
        self.register_buffer("indices", multisets, persistent=False)
        self.linear = nn.Linear(monomials, out_features, bias=bias, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Re-draw the linear map."""
        self.linear.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        if x.size(-1) != self.in_features:
            raise InputError(
                f"Expected an input of shape (..., {self.in_features}), got {list(x.shape)}."
            )
        with_constant = F.pad(x, [1, 0], value=1.0)
        monomials = with_constant.index_select(-1, self.indices[:, 0])
        for k in range(1, self.degree):
            monomials = monomials * with_constant.index_select(-1, self.indices[:, k])
        return self.linear(monomials)

    def extra_repr(self) -> str:  # noqa: D102
        return f"in_features={self.in_features}, degree={self.degree}"


INTERACTIONS: dict[str, type[FactorLayer] | type[ExplicitLayer]] = {
    "gated": PolynomialLayer,
    "scaled": ScaledPolynomialLayer,
    "product": ProductLayer,
    "ccp": CCPLayer,
    "glu": GLULayer,
    "explicit": ExplicitLayer,
    "linear": LinearLayer,
}
"""Interaction layers by name."""

GATED = tuple(name for name, layer in INTERACTIONS.items() if issubclass(layer, PolynomialLayer))
"""Names of those with gates, which have the options of :class:`PolynomialLayer`."""


def make_interaction(
    name: str, in_features: int, out_features: int, degree: int | None = None, **options: Any
) -> FactorLayer | ExplicitLayer:
    """Build an interaction layer by name.

    Args:
        name: One of :data:`INTERACTIONS`.
        in_features: Input size.
        out_features: Output size.
        degree: Polynomial degree; ``None`` for the layer's default (1 for linear, else 2).
        **options: Further keyword arguments of the layer; unknown ones are errors.
    """
    layer = INTERACTIONS[check_choice("interaction", name, INTERACTIONS)]
    if degree is not None:
        options["degree"] = degree
    return layer(in_features, out_features, **options)
