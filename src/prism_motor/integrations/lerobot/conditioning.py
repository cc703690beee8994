"""Which conditioner stands in the proprioceptive pathway: the fields both policies share."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from prism_motor._errors import InputError
from prism_motor.integrations.lerobot.conditioning import MLPConditioner, matched_widths
from prism_motor.nn import INTERACTIONS, PolynomialConditioner, make_interaction
from prism_motor.nn.checks import check_choice, check_degree, check_size

CONDITIONERS = ("linear", "mlp", "prism")
MLP_SIZES = ("matched", "larger")
NORMS = ("layer", "rms")


@dataclass
class ConditionerFields:
    """Fields that choose the conditioner; everything else of the policy is LeRobot's."""

    conditioner: str = "prism"
    """``linear``: LeRobot's own pathway, untouched; ``mlp``: the capacity control; ``prism``."""
    prism_interaction: str = "gated"
    """Interaction layer, one of ``prism_motor.nn.INTERACTIONS``: gated, product, ccp, glu, explicit."""
    prism_degree: int = 2
    """Highest polynomial degree."""
    prism_latent: int | None = None
    """Width of the interaction stage; ``None`` for the size of the output."""
    prism_gate_init: float = 0.01
    """Initial value of every gate (gated only)."""
    mlp_size: str = "matched"
    """``matched``: three linear layers with the parameters of ``prism`` under the same fields, and
    its input and output norm, so that products are all that differs. ``larger``: a plain MLP,
    several times bigger."""
    input_norm: str | None = None
    """``layer``, ``rms`` or none, over the state."""
    latent_norm: str | None = None
    """The same, over the interaction features (prism only)."""
    output_norm: str | None = None
    """The same, over the output."""

    NORM_EPS: ClassVar[float] = 1e-5
    LARGER_WIDTHS: ClassVar[tuple[int, ...]] = ()

    def check_conditioner(self) -> None:
        """Refuse values that no conditioner can be built from."""
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
        """Return what tells this conditioner from others: the fields that matter to it."""
        names: list[str] = ["mlp_size"] if self.conditioner == "mlp" else []
        if self.conditioner == "prism" or (self.conditioner, self.mlp_size) == ("mlp", "matched"):
            names += ["prism_interaction", "prism_degree", "prism_latent"]
            names += ["input_norm", "latent_norm", "output_norm"]
        return {"conditioner": self.conditioner, **{name: getattr(self, name) for name in names}}

    def make_conditioner(self, in_features: int, out_features: int) -> nn.Module | None:
        """Build the conditioner; ``None`` for ``linear``, which is LeRobot's to build."""
        if self.conditioner == "prism":
            return self._make_prism(in_features, out_features)
        if self.conditioner == "mlp":
            return self._make_mlp(in_features, out_features)
        return None

    def _make_prism(self, in_features: int, out_features: int) -> PolynomialConditioner:
        options: dict[str, Any] = {}
        if self.prism_interaction == "gated":
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
        if self.mlp_size == "larger":
            return MLPConditioner(in_features, self.LARGER_WIDTHS, out_features)
        return MLPConditioner(
            in_features,
            matched_widths(lambda: self._make_prism(in_features, out_features)),
            out_features,
            input_norm=self.input_norm,
            output_norm=self.output_norm,
            norm_eps=self.NORM_EPS,
        )
