"""What the product layers share: K affine factors of one input, computed by a single GEMM."""

import math
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prism_motor._checks import InputError, InputTypeError, check_degree, check_size
from prism_motor.nn.expansion import Expansion, expand_product


class FactorLayer(nn.Module):
    """Base of the layers that combine ``degree`` affine maps of the same input.

    Subclasses say how the factors become the output (:meth:`combine`). Leading dimensions are free.

    Parameters (the state_dict, stable across releases):
        ``weight``: (degree, out_features, in_features); ``weight[k]`` is factor k.
        ``bias``: (degree, out_features), absent with ``bias=False``.
    """

    in_features: Final[int]
    out_features: Final[int]
    degree: Final[int]

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
        super().__init__()
        owner = type(self).__name__
        self.in_features = check_size(owner, "in_features", in_features)
        self.out_features = check_size(owner, "out_features", out_features)
        self.degree = check_degree(owner, degree)
        if dtype is not None and not dtype.is_floating_point:
            raise InputTypeError(f"{owner}: dtype must be a floating-point type, got {dtype}.")
        kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(degree, out_features, in_features, **kwargs))
        self.bias: nn.Parameter | None
        self.register_parameter(
            "bias", nn.Parameter(torch.empty(degree, out_features, **kwargs)) if bias else None
        )

    def reset_parameters(self) -> None:
        """Draw the first factor as ``nn.Linear`` does, later ones likewise with zero bias."""
        with torch.no_grad():
            for k in range(self.degree):
                nn.init.kaiming_uniform_(self.weight[k], a=math.sqrt(5))
                if self.bias is not None:
                    if k == 0:
                        bound = 1 / math.sqrt(self.in_features)
                        nn.init.uniform_(self.bias[0], -bound, bound)
                    else:
                        nn.init.zeros_(self.bias[k])

    def factors(self, x: Tensor) -> list[Tensor]:
        """Return the ``degree`` affine maps of ``x``: (..., in) -> degree x (..., out)."""
        if not isinstance(x, Tensor):
            raise InputTypeError(f"The input must be a tensor, got {type(x).__name__}.")
        if x.size(-1) != self.in_features:
            raise InputError(
                f"Expected an input of shape (..., {self.in_features}), got {list(x.shape)}. "
                "The last dimension must hold the in_features the layer was built with."
            )
        if not x.is_floating_point():
            raise InputTypeError(
                f"Expected a floating-point input, got {x.dtype}. Convert it first: x.float()."
            )
        bias = self.bias
        # One GEMM to degree * out features: reading x once is what makes degree K cheap.
        stacked = F.linear(x, self.weight.flatten(0, 1), None if bias is None else bias.flatten())
        return list(stacked.chunk(self.degree, dim=-1))

    def combine(self, factors: list[Tensor]) -> Tensor:
        """Turn the factors into the output."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        return self.combine(self.factors(x))

    def affine_factors(self) -> tuple[Tensor, Tensor]:
        """Return (constant, linear) with output = prod_k (constant[k] + linear[k] @ x).

        Shapes (degree, out) and (degree, out, in).
        """
        raise InputTypeError(
            f"{type(self).__name__} is not a product of affine factors, so it has no finite "
            "polynomial expansion."
        )

    def expand(self, top: int | None = None) -> Expansion:
        """Return the exact polynomial coefficients of every output feature, per degree.

        Args:
            top: Keep only the ``top`` largest coefficients of each feature and degree. Needed when
                the full expansion would be too large to hold.
        """
        constant, linear = self.affine_factors()
        return expand_product(constant.detach(), linear.detach(), top)

    def extra_repr(self) -> str:  # noqa: D102
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"degree={self.degree}, bias={self.bias is not None}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        problem = self._layout_problem(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        if problem:
            error_messages: list[str] = args[-1] if args else kwargs["error_msgs"]
            error_messages.insert(0, problem)

    def _layout_problem(self, state_dict: dict[str, Any], prefix: str) -> str | None:
        """Explain, in terms of this layer, why a state_dict does not fit."""
        if problem := reference_layout_problem(type(self).__name__, state_dict, prefix):
            return problem
        where = f"{type(self).__name__} '{prefix.rstrip('.')}'" if prefix else type(self).__name__
        weight = state_dict.get(f"{prefix}weight")
        if weight is None or weight.shape == self.weight.shape:
            return None
        expected = list(self.weight.shape)
        if weight.ndim == 2:
            return (
                f"{where}: the checkpoint holds a plain linear map {list(weight.shape)}, this "
                f"layer needs (degree, out, in) = {expected}. To start from a trained "
                f"nn.Linear, use PolynomialLayer.from_linear(linear, degree={self.degree})."
            )
        if weight.ndim == 3 and weight.shape[1:] == self.weight.shape[1:]:
            return (
                f"{where}: the checkpoint has degree {weight.shape[0]}, this layer has degree "
                f"{self.degree}. Build the layer with degree={weight.shape[0]} to load it."
            )
        return (
            f"{where}: the checkpoint's weight has shape {list(weight.shape)}, this layer needs "
            f"(degree, out, in) = {expected}. Build the layer with the checkpoint's sizes."
        )


def reference_layout_problem(owner: str, state_dict: dict[str, Any], prefix: str) -> str | None:
    """Recognise the authors' layout and name the function that loads it."""
    if f"{prefix}factors.0.weight" not in state_dict:
        return None
    return (
        f"{owner} '{prefix.rstrip('.')}': these weights have the layout of the authors' reference "
        "conditioner (factors.k.weight). Load them with "
        "prism_motor.nn.conditioner_from_reference()."
    )
