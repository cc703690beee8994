"""The conditioner of the paper: interactions, then the learned projection g."""

from typing import Any, Final

import torch
from torch import Tensor, nn

from prism.nn._checks import check_choice, check_size, make_activation
from prism.nn.alternatives import ExplicitLayer, make_interaction
from prism.nn.factors import FactorLayer

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
            :data:`prism.nn.INTERACTIONS`.
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
            raise TypeError(
                "PolynomialConditioner: interaction must be an interaction layer such as "
                f"PolynomialLayer(in_features, latent), got {type(interaction).__name__}."
            )
        if projection_layers not in (1, 2):
            raise ValueError(
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

    @classmethod
    def humanoid_gym(
        cls, in_features: int = 705, latent: int = 256, degree: int = 2, interaction: str = "gated"
    ) -> "PolynomialConditioner":
        """Front of the locomotion actor: interactions, ``Linear(latent, latent)``, ELU."""
        layer = _interaction(interaction, in_features, latent, degree)
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
            _interaction(interaction, in_features, latent, degree),
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
            _interaction(interaction, in_features, hidden, degree),
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
            _interaction(interaction, in_features, in_features, degree),
            in_features,
            projection_layers=2,
            activation="mish",
            output_norm="rms",
            norm_eps=1e-6,
        )


def _interaction(
    name: str, in_features: int, latent: int, degree: int
) -> FactorLayer | ExplicitLayer:
    return make_interaction(name, in_features, latent, degree)


def _make_norm(name: str | None, size: int, eps: float, like: dict[str, Any]) -> nn.Module:
    if name is None:
        return nn.Identity()
    return _NORMS[check_choice("norm", name, _NORMS)](size, eps=eps, **like)


def conditioner_from_reference(
    state_dict: dict[str, Tensor], activation: str = "silu", norm_eps: float = 1e-6
) -> PolynomialConditioner:
    """Build a conditioner from weights saved by the authors' reference implementation.

    Degree, sizes, gating (``interaction_scales`` present or not), depth of g and RMSNorm are read
    off the keys; the activation and the norm's epsilon are not stored there and must be given.

    Args:
        state_dict: Keys ``factors.k.weight/bias``, ``interaction_scales``, ``post_mlp.net.*`` and
            ``output_norm.weight``.
        activation: Activation of g. A one-layer g of the reference has none after it: the
            authors' actor applies it outside, so give ``"elu"`` to include it here or
            ``"identity"`` to leave it out.
        norm_eps: Epsilon of the output norm.
    """
    rest = dict(state_dict)
    degree = 0
    weights, biases = [], []
    while f"factors.{degree}.weight" in rest:
        weights.append(rest.pop(f"factors.{degree}.weight"))
        biases.append(rest.pop(f"factors.{degree}.bias"))
        degree += 1
    one_layer = "post_mlp.net.weight" in rest
    projection_keys = (
        {"post_mlp.net": "0"} if one_layer else {"post_mlp.net.0": "0", "post_mlp.net.2": "2"}
    )
    needed = [f"{key}.{part}" for key in projection_keys for part in ("weight", "bias")]
    missing = [key for key in needed if key not in rest] + ([] if degree else ["factors.0.weight"])
    if missing:
        raise ValueError(
            f"Not a reference conditioner: missing {', '.join(missing)}; got keys "
            f"{', '.join(sorted(state_dict)) or '(none)'}. Pass the conditioner's own state_dict, "
            "without the prefix of the model around it."
        )
    projection = {
        f"{ours}.{part}": rest.pop(f"{theirs}.{part}")
        for theirs, ours in projection_keys.items()
        for part in ("weight", "bias")
    }
    gate = rest.pop("interaction_scales", None)
    norm_weight = rest.pop("output_norm.weight", None)
    if rest:
        raise ValueError(
            f"Unexpected keys in the reference conditioner: {', '.join(sorted(rest))}. Supported: "
            "factors.k.*, interaction_scales, post_mlp.net.* (one or two layers), "
            "output_norm.weight."
        )
    latent, in_features = weights[0].shape
    layer = make_interaction(
        "gated" if gate is not None or degree == 1 else "product",
        in_features,
        latent,
        degree,
        dtype=weights[0].dtype,
        device=weights[0].device,
    )
    last = projection["0.weight" if one_layer else "2.weight"]
    conditioner = PolynomialConditioner(
        layer,
        last.shape[0],
        projection_layers=1 if one_layer else 2,
        activation=activation,
        output_norm=None if norm_weight is None else "rms",
        norm_eps=norm_eps,
    )
    layer_state = {"weight": torch.stack(weights), "bias": torch.stack(biases)}
    if gate is not None:
        layer_state["gate"] = gate
    layer.load_state_dict(layer_state)
    conditioner.projection.load_state_dict(projection)
    if norm_weight is not None:
        conditioner.output_norm.load_state_dict({"weight": norm_weight})
    return conditioner
