"""The conditioner of the paper: interactions, then the learned projection g."""

from typing import Any, Final

from torch import Tensor, nn

from prism_motor._checks import InputError, InputTypeError, check_choice, check_size
from prism_motor.nn.alternatives import ExplicitLayer, make_interaction
from prism_motor.nn.factors import FactorLayer, reference_layout_problem

_NORMS: dict[str, type[nn.LayerNorm] | type[nn.RMSNorm]] = {
    "layer": nn.LayerNorm,
    "rms": nn.RMSNorm,
}


class PolynomialConditioner(nn.Module):
    """``z = g(psi(x))``: an interaction layer followed by the learned projection g.

    Order: input norm, interactions, latent norm, projection, output norm. The projection is
    ``Linear, activation`` with one layer and ``Linear, activation, Linear`` with two.

    The four backbones of the paper are named constructors: :meth:`humanoid_gym`,
    :meth:`diffusion_policy`, :meth:`smolvla`, :meth:`bfm_zero`.

    Args:
        interaction: The interaction stage, e.g. ``PolynomialLayer(16, 256)`` or any of
            :data:`prism_motor.nn.INTERACTIONS`.
        out_features: Size of the conditioning vector.
        projection_layers: 1 or 2 linear layers in g.
        activation: Activation of g by name.
        input_norm: ``"layer"``, ``"rms"`` or ``None``; over the input.
        latent_norm: The same, over the interaction features.
        output_norm: The same, over the output.
        norm_eps: Added to the variance in every norm.

    Shape: (..., interaction.in_features) -> (..., out_features).

    State dict: ``interaction.*``, ``projection.0.*`` and, with two layers, ``projection.2.*``;
    ``input_norm.*``, ``latent_norm.*``, ``output_norm.*`` where used.
    """

    in_features: Final[int]
    out_features: Final[int]

    def __init__(
        self,
        interaction: FactorLayer | ExplicitLayer,
        out_features: int,
        *,
        projection_layers: int = 1,
        activation: str = "silu",
        input_norm: str | None = None,
        latent_norm: str | None = None,
        output_norm: str | None = None,
        norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        if not isinstance(interaction, FactorLayer | ExplicitLayer):
            raise InputTypeError(
                "PolynomialConditioner: interaction must be an interaction layer such as "
                f"PolynomialLayer(in_features, latent), got {type(interaction).__name__}."
            )
        if projection_layers not in (1, 2):
            raise InputError(
                f"PolynomialConditioner: projection_layers must be 1 or 2, got {projection_layers}."
            )
        self.in_features = interaction.in_features
        self.out_features = check_size("PolynomialConditioner", "out_features", out_features)
        latent = interaction.out_features
        parameter = next(interaction.parameters())
        like: dict[str, Any] = {"device": parameter.device, "dtype": parameter.dtype}

        self.input_norm = _make_norm(input_norm, self.in_features, norm_eps, like)
        self.interaction = interaction
        self.latent_norm = _make_norm(latent_norm, latent, norm_eps, like)
        hidden = out_features if projection_layers == 1 else latent
        self.projection = nn.Sequential(
            nn.Linear(latent, hidden, **like), make_activation(activation)
        )
        if projection_layers == 2:
            self.projection.append(nn.Linear(hidden, out_features, **like))
        self.output_norm = _make_norm(output_norm, out_features, norm_eps, like)

    def features(self, x: Tensor) -> Tensor:
        """Return the interaction features psi(x), before g."""
        return self.interaction(self.input_norm(x))

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        return self.output_norm(self.projection(self.latent_norm(self.features(x))))

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        if problem := reference_layout_problem(type(self).__name__, state_dict, prefix):
            error_messages: list[str] = args[-1] if args else kwargs["error_msgs"]
            error_messages.insert(0, problem)

    @classmethod
    def humanoid_gym(
        cls, in_features: int = 705, latent: int = 256, degree: int = 2, interaction: str = "gated"
    ) -> "PolynomialConditioner":
        """Front of the locomotion actor: interactions, ``Linear(latent, latent)``, ELU."""
        layer = make_interaction(interaction, in_features, latent, degree)
        return cls(layer, latent, activation="elu")

    @classmethod
    def diffusion_policy(
        cls,
        in_features: int = 16,
        out_features: int | None = None,
        latent: int = 256,
        degree: int = 2,
        interaction: str = "gated",
    ) -> "PolynomialConditioner":
        """State history of Diffusion Policy: LayerNorm around the interactions, two-layer g."""
        return cls(
            make_interaction(interaction, in_features, latent, degree),
            in_features if out_features is None else out_features,
            projection_layers=2,
            input_norm="layer",
            latent_norm="layer",
        )

    @classmethod
    def smolvla(
        cls, in_features: int = 32, hidden: int = 960, degree: int = 2, interaction: str = "gated"
    ) -> "PolynomialConditioner":
        """State token of SmolVLA: two-layer g at the language model's width, RMSNorm."""
        return cls(
            make_interaction(interaction, in_features, hidden, degree),
            hidden,
            projection_layers=2,
            output_norm="rms",
            norm_eps=1e-6,
        )

    @classmethod
    def bfm_zero(
        cls, in_features: int = 372, degree: int = 2, interaction: str = "gated"
    ) -> "PolynomialConditioner":
        """History filter of BFM-Zero: two-layer g with Mish, RMSNorm, size unchanged."""
        return cls(
            make_interaction(interaction, in_features, in_features, degree),
            in_features,
            projection_layers=2,
            activation="mish",
            output_norm="rms",
            norm_eps=1e-6,
        )


def _make_norm(name: str | None, size: int, eps: float, like: dict[str, Any]) -> nn.Module:
    if name is None:
        return nn.Identity()
    return _NORMS[check_choice("norm", name, _NORMS)](size, eps=eps, **like)


_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "identity": nn.Identity,
    "mish": nn.Mish,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


def make_activation(name: str) -> nn.Module:
    """Build an activation module by name."""
    return _ACTIVATIONS[check_choice("activation", name, _ACTIVATIONS)]()
