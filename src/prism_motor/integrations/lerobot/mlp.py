"""The capacity control: a plain MLP where the conditioner of PRISM would be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise

import torch
from torch import Tensor, nn

from prism_motor._errors import InputError
from prism_motor.nn import PolynomialConditioner, count_parameters, matched_mlp

_NORMS: dict[str, type[nn.LayerNorm] | type[nn.RMSNorm]] = {
    "layer": nn.LayerNorm,
    "rms": nn.RMSNorm,
}


_PROPORTIONS = ((2, 2), (3, 2), (2, 3), (2, 1), (1, 2), (3, 1))
"""Of the two hidden widths, tried in turn: small sizes cannot be matched with equal ones."""


class MLPConditioner(nn.Module):
    """Linear layers with SiLU between them, with a norm at either end where asked for.

    Args:
        in_features: Size of the state.
        hidden: Hidden widths.
        out_features: Size of the conditioning vector.
        input_norm: ``"layer"``, ``"rms"`` or ``None``.
        output_norm: The same.
        norm_eps: Added to the variance in every norm.

    Shape: (..., in_features) -> (..., out_features).
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        out_features: int,
        *,
        input_norm: str | None = None,
        output_norm: str | None = None,
        norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.input_norm = _make_norm(input_norm, in_features, norm_eps)
        sizes = (in_features, *hidden, out_features)
        self.layers = nn.Sequential()
        for layer_in, layer_out in pairwise(sizes):
            if len(self.layers):
                self.layers.append(nn.SiLU())
            self.layers.append(nn.Linear(layer_in, layer_out))
        self.output_norm = _make_norm(output_norm, out_features, norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        return self.output_norm(self.layers(self.input_norm(x)))


def matched_widths(make_reference: Callable[[], PolynomialConditioner]) -> tuple[int, ...]:
    """Return the hidden widths of the MLP with the parameters of the reference, within 0.1 %.

    The norms at either end are left out of the count on both sides: the MLP has them too.
    """
    with torch.device("meta"):  # sizes alone: no memory and no random numbers are used
        reference = make_reference()
        reference.input_norm = reference.output_norm = nn.Identity()
        for shape in _PROPORTIONS:
            with suppress(ValueError):
                return matched_mlp(reference, hidden=shape).config.hidden
    raise InputError(
        f"No MLP {reference.in_features}-...-{reference.out_features} of three layers comes within "
        f"0.1 % of the {count_parameters(reference):,} parameters of PRISM. Choose another "
        "prism_latent, or mlp_size='large'."
    )


def _make_norm(name: str | None, size: int, eps: float) -> nn.Module:
    return nn.Identity() if name is None else _NORMS[name](size, eps=eps)
