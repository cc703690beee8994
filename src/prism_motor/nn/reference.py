"""Weights saved by the authors' reference conditioner."""

from __future__ import annotations

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.nn.alternatives import make_interaction
from prism_motor.nn.conditioner import PolynomialConditioner


def conditioner_from_reference(
    state_dict: dict[str, Tensor], activation: str = "silu", norm_eps: float = 1e-6
) -> PolynomialConditioner:
    """Build a conditioner from weights saved by the authors' reference implementation.

    Degree, sizes, gating (``interaction_scales`` present or not), depth of g and RMSNorm follow
    from the keys; the activation and the norm's epsilon are not stored and must be given.

    Args:
        state_dict: Keys ``factors.k.weight/bias``, ``interaction_scales``, ``post_mlp.net.*`` and
            ``output_norm.weight``.
        activation: Activation of g. A one-layer g of the reference has none after it: the
            authors' actor applies it outside, so give ``"elu"`` to include it here or
            ``"identity"`` to leave it out.
        norm_eps: Epsilon of the output norm.
    """
    # Infer the architecture from the keys.
    degree = sum(f"factors.{k}.weight" in state_dict for k in range(len(state_dict)))
    one_layer = "post_mlp.net.weight" in state_dict
    projection = {"post_mlp.net": "0"}
    if not one_layer:
        projection = {"post_mlp.net.0": "0", "post_mlp.net.2": "2"}
    _check_keys(state_dict, max(1, degree), list(projection))

    # Build a conditioner of the same sizes.
    weights = torch.stack([state_dict[f"factors.{k}.weight"] for k in range(degree)])
    gate = state_dict.get("interaction_scales")
    norm_weight = state_dict.get("output_norm.weight")
    layer = make_interaction(
        "gated" if gate is not None or degree == 1 else "product",
        weights.shape[2],
        weights.shape[1],
        degree,
        dtype=weights.dtype,
        device=weights.device,
    )
    conditioner = PolynomialConditioner(
        layer,
        state_dict[f"{list(projection)[-1]}.weight"].shape[0],
        projection_layers=len(projection),
        activation=activation,
        output_norm=None if norm_weight is None else "rms",
        norm_eps=norm_eps,
    )
    # Rename their tensors to ours.
    biases = torch.stack([state_dict[f"factors.{k}.bias"] for k in range(degree)])
    ours = {"interaction.weight": weights, "interaction.bias": biases}
    if gate is not None:
        ours["interaction.gate"] = gate
    if norm_weight is not None:
        ours["output_norm.weight"] = norm_weight
    for theirs, index in projection.items():
        for part in ("weight", "bias"):
            ours[f"projection.{index}.{part}"] = state_dict[f"{theirs}.{part}"]
    conditioner.load_state_dict(ours)
    return conditioner


def _check_keys(state_dict: dict[str, Tensor], degree: int, projection: list[str]) -> None:
    modules = [*(f"factors.{k}" for k in range(degree)), *projection]
    needed = {f"{module}.{part}" for module in modules for part in ("weight", "bias")}
    missing = sorted(needed - state_dict.keys())
    if missing:
        raise InputError(
            f"Not a reference conditioner: missing {', '.join(missing)}; got keys "
            f"{', '.join(sorted(state_dict)) or '(none)'}. Pass the conditioner's own state_dict, "
            "without the prefix of the model around it."
        )
    unexpected = sorted(state_dict.keys() - needed - {"interaction_scales", "output_norm.weight"})
    if unexpected:
        raise InputError(
            f"Unexpected keys in the reference conditioner: {', '.join(unexpected)}. Supported: "
            "factors.k.*, interaction_scales, post_mlp.net.* (one or two layers), "
            "output_norm.weight."
        )
