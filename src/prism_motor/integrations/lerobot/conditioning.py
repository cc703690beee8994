"""The conditioner in the proprioceptive pathway, shared by both policies."""

# Annotations stay evaluated (no __future__ import): LeRobot's command line reads field types.
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError, check_choice, check_degree, check_size
from prism_motor.nn import (
    GATED,
    INTERACTIONS,
    PolynomialConditioner,
    count_parameters,
    make_interaction,
    matched_mlp,
    parameter_groups,
)

CONDITIONERS = ("linear", "mlp", "prism")
MLP_SIZES = ("matched", "large")
_OLD_SIZES = {"larger": "large"}
"""Names in older checkpoints."""
NORMS: dict[str, type[nn.LayerNorm] | type[nn.RMSNorm]] = {
    "layer": nn.LayerNorm,
    "rms": nn.RMSNorm,
}

_PROPORTIONS = ((2, 2), (3, 2), (2, 3), (2, 1), (1, 2), (3, 1))
"""Ratios of the two hidden widths, tried in turn: equal ones cannot match small sizes."""


class MLPConditioner(nn.Module):
    """The capacity control: linear layers with SiLU between them, and optional norms.

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

    The norms at both ends are not counted, because the MLP has them too.
    """
    with torch.device("meta"):  # only sizes: no memory and no random numbers are used
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
    return nn.Identity() if name is None else NORMS[name](size, eps=eps)


@dataclass
class ConditionerFields:
    """Fields that choose the conditioner; everything else of the policy is LeRobot's."""

    conditioner: str = "prism"
    """``linear``: LeRobot's own pathway, untouched; ``mlp``: the capacity control; ``prism``."""
    prism_interaction: str = "gated"
    """Interaction layer, one of ``prism_motor.nn.INTERACTIONS``: gated, product, ..."""
    prism_degree: int = 2
    """Highest polynomial degree."""
    prism_latent: int | None = None
    """Width of the interaction stage; ``None`` for the size of the output."""
    prism_gate_init: float = 0.01
    """Initial value of every gate (gated only)."""
    mlp_size: str = "matched"
    """``matched``: three linear layers with the parameters of ``prism`` under the same fields, and
    its input and output norm, so that only the products differ. ``large``: a plain MLP, several
    times bigger."""
    input_norm: str | None = None
    """``layer``, ``rms`` or none, over the state."""
    latent_norm: str | None = None
    """The same, over the interaction features (prism only)."""
    output_norm: str | None = None
    """The same, over the output."""

    NORM_EPS: ClassVar[float] = 1e-5
    LARGE_WIDTHS: ClassVar[tuple[int, ...]] = ()

    def check_conditioner(self) -> None:
        """Raise on values that no conditioner can be built from; old names become new ones."""
        self.mlp_size = _OLD_SIZES.get(self.mlp_size, self.mlp_size)
        check_choice("conditioner", self.conditioner, CONDITIONERS)
        check_choice("prism_interaction", self.prism_interaction, INTERACTIONS)
        check_choice("mlp_size", self.mlp_size, MLP_SIZES)
        check_degree("prism_degree", self.prism_degree)
        if self.prism_interaction == "linear" and self.prism_degree != 1:
            raise InputError(
                f"prism_interaction='linear' has degree 1, got prism_degree={self.prism_degree}. "
                "For products use 'gated'."
            )
        if self.prism_latent is not None:
            check_size(type(self).__name__, "prism_latent", self.prism_latent)
        if not math.isfinite(self.prism_gate_init):
            raise InputError(f"prism_gate_init must be finite, got {self.prism_gate_init}.")
        for name in ("input_norm", "latent_norm", "output_norm"):
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), NORMS)

    def conditioner_traits(self) -> dict[str, object]:
        """Return what distinguishes this conditioner from others: the fields that matter to it."""
        names: list[str] = ["mlp_size"] if self.conditioner == "mlp" else []
        if self.conditioner == "prism" or (self.conditioner, self.mlp_size) == ("mlp", "matched"):
            names += ["prism_interaction", "prism_degree", "prism_latent"]
            names += ["input_norm", "latent_norm", "output_norm"]
        return {"conditioner": self.conditioner, **{name: getattr(self, name) for name in names}}

    def make_conditioner(self, in_features: int, out_features: int) -> nn.Module | None:
        """Build the conditioner; ``None`` for ``linear``, which LeRobot builds."""
        if self.conditioner == "prism":
            return self._make_prism(in_features, out_features)
        if self.conditioner == "mlp":
            return self._make_mlp(in_features, out_features)
        return None

    def _make_prism(self, in_features: int, out_features: int) -> PolynomialConditioner:
        options: dict[str, Any] = {}
        if self.prism_interaction in GATED:
            options["gate_init"] = self.prism_gate_init
        latent = out_features if self.prism_latent is None else self.prism_latent
        return PolynomialConditioner(
            make_interaction(
                self.prism_interaction, in_features, latent, self.prism_degree, **options
            ),
            out_features,
            projection_layers=2,
            input_norm=self.input_norm,
            latent_norm=self.latent_norm,
            output_norm=self.output_norm,
            norm_eps=self.NORM_EPS,
        )

    def _make_mlp(self, in_features: int, out_features: int) -> MLPConditioner:
        if self.mlp_size == "large":
            return MLPConditioner(in_features, self.LARGE_WIDTHS, out_features)
        return MLPConditioner(
            in_features,
            matched_widths(lambda: self._make_prism(in_features, out_features)),
            out_features,
            input_norm=self.input_norm,
            output_norm=self.output_norm,
            norm_eps=self.NORM_EPS,
        )


def optimizer_groups(model: nn.Module, conditioner: nn.Module | None) -> list[dict[str, Any]]:
    """Return all parameters of ``model``, with its conditioner's gates excluded from weight decay.

    Biases and norms of the conditioner are not decayed either. LeRobot's own parameters are all in
    the first group, as without PRISM; that group has the optimiser's weight decay.
    """
    undecayed: list[nn.Parameter] = []
    if conditioner is not None:
        for group in parameter_groups(conditioner, weight_decay=1.0):
            undecayed += [] if group["weight_decay"] else group["params"]
    excluded = {id(parameter) for parameter in undecayed}
    groups: list[dict[str, Any]] = [
        {"params": [p for p in model.parameters() if id(p) not in excluded]}
    ]
    if undecayed:
        groups.append({"params": undecayed, "weight_decay": 0.0})
    return groups
