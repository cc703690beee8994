"""The strongest products that a polynomial layer learned, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.nn.expansion import expand_readout


@dataclass(frozen=True)
class Interaction:
    """One learned product of a polynomial layer, in one feature or in all that is read."""

    feature: int | None
    """Index of the layer's output feature; ``None`` for a product of all features together."""
    factors: tuple[int, ...]
    """Which factors are multiplied, counted from 1 as in the paper: (1, 2) is u * v. Empty for a
    product of all features together."""
    inputs: tuple[str, ...]
    """The input with the largest weight of each factor, named independently."""
    strength: float
    """Size of the whole product: |gates| times the norms of the factors' weights. With a readout:
    norm of the coefficients over its rows."""
    coefficient: float
    """Signed coefficient of just the named product: gates times its weights. With a readout: in the
    row that reads it most."""
    share: float
    """How much of the product the names stand for: mean over factors of max(w^2) / sum(w^2). With a
    readout: how much of all products, by squared coefficients."""

    def __str__(self) -> str:
        where = "" if self.feature is None else f"feature {self.feature}: "
        product = " * ".join(self.inputs)
        return f"{where}{self.coefficient:+.3g} * {product} (share {self.share:.0%})"


def strongest_products(
    weight: Tensor,
    gate: Tensor,
    names: Sequence[str] | None,
    top: int | None,
    input_scale: Tensor | Sequence[float] | None,
) -> list[Interaction]:
    """List the products of a gated layer by strength.

    Args:
        weight: (degree, out, in).
        gate: (degree - 1, out).
        names: One name per input, or ``None`` for x0, x1, ...
        top: How many to return, or ``None`` for all.
        input_scale: Typical size of each input, or ``None`` for all equal.
    """
    degree, out_features, _ = weight.shape
    names, weight = _checked(weight, names, top, input_scale)
    gate = gate.double().cpu()

    # Each factor is named by the input with the largest weight.
    norm = weight.norm(dim=-1)  # (degree, out)
    dominant = weight.abs().argmax(-1)  # (degree, out)
    peak = weight.gather(-1, dominant.unsqueeze(-1)).squeeze(-1)
    concentration = peak.square() / norm.square().clamp_min(1e-300)

    # A product is the first factor times any set of later ones; keep the top ones of each set.
    found: list[Interaction] = []
    for size in range(1, degree):
        for later in combinations(range(1, degree), size):
            members = (0, *later)
            gates = gate[[k - 1 for k in later]].prod(0)
            strength = gates.abs() * norm[list(members)].prod(0)
            coefficient = gates * peak[list(members)].prod(0)
            share = concentration[list(members)].mean(0)
            keep = range(out_features)
            if top is not None:
                keep = strength.topk(min(top, out_features)).indices.tolist()
            found += [
                Interaction(
                    feature=j,
                    factors=tuple(k + 1 for k in members),
                    inputs=tuple(names[int(dominant[k, j])] for k in members),
                    strength=float(strength[j]),
                    coefficient=float(coefficient[j]),
                    share=float(share[j]),
                )
                for j in keep
            ]
    found.sort(key=lambda entry: -entry.strength)
    return found if top is None else found[:top]


def strongest_read(
    constant: Tensor,
    linear: Tensor,
    readout: Tensor,
    names: Sequence[str] | None,
    top: int | None,
    input_scale: Tensor | Sequence[float] | None,
) -> list[Interaction]:
    """List the products of inputs that a linear readout of all features contains, by strength.

    Args:
        constant: (degree, out), as the rest of the factors constant[k] + linear[k] @ x.
        linear: (degree, out, in).
        readout: (rows, out), or (out,) for a single row.
        names: As in :func:`strongest_products`, as the rest.
        top: How many to return, or ``None`` for all.
        input_scale: Typical size of each input, or ``None`` for all equal.
    """
    names, linear = _checked(linear, names, top, input_scale)
    readout = torch.atleast_2d(readout.detach().double().cpu())
    if readout.shape[-1] != linear.shape[1]:
        raise InputError(
            f"interactions: readout must have one column for each of the {linear.shape[1]} "
            f"features, got {list(readout.shape)}. Give the weight of the layer behind this one."
        )
    read = expand_readout(constant, linear, readout)
    total = sum(float(terms.coefficients.square().sum()) for d, terms in read.items() if d > 1)
    found: list[Interaction] = []
    for degree, terms in read.items():
        if degree < 2:
            continue
        strength = terms.coefficients.norm(dim=0)
        row = terms.coefficients.abs().argmax(0)
        wanted = len(strength) if top is None else min(top, len(strength))
        found += [
            Interaction(
                feature=None,
                factors=(),
                inputs=tuple(names[int(j)] for j in terms.monomials[0, i]),
                strength=float(strength[i]),
                coefficient=float(terms.coefficients[row[i], i]),
                share=float(strength[i]) ** 2 / max(total, 1e-300),
            )
            for i in strength.topk(wanted).indices.tolist()
        ]
    found.sort(key=lambda entry: -entry.strength)
    return found if top is None else found[:top]


def _checked(
    weight: Tensor,
    names: Sequence[str] | None,
    top: int | None,
    input_scale: Tensor | Sequence[float] | None,
) -> tuple[Sequence[str], Tensor]:
    """Return names, and weights (..., in) scaled so that inputs in different units compare."""
    in_features = weight.shape[-1]
    if names is None:
        names = [f"x{i}" for i in range(in_features)]
    if len(names) != in_features:
        raise InputError(
            f"interactions: got {len(names)} names for {in_features} inputs; give one per input "
            "(frame_names(names, frames) repeats them over a history)."
        )
    if top is not None and top < 1:
        raise InputError(f"interactions: top must be at least 1 or None, got {top}.")
    weight = weight.double().cpu()
    if input_scale is None:
        return names, weight
    scale = torch.as_tensor(input_scale, dtype=torch.float64).cpu()
    if scale.shape != (in_features,):
        raise InputError(
            f"interactions: input_scale must have shape ({in_features},), got {list(scale.shape)}."
        )
    return names, weight * scale


def strongest_pairs(
    weight: Tensor,
    gate: Tensor,
    factors: tuple[int, int],
    names: Sequence[str] | None,
    top: int | None,
    input_scale: Tensor | Sequence[float] | None,
) -> list[Interaction]:
    """List the products of just two affine maps by strength.

    Args:
        weight: (2, out, in).
        gate: (out,).
        factors: What the two are called, counted from 1.
        names: As in :func:`strongest_products`, as the rest.
        top: How many to return, or ``None`` for all.
        input_scale: Typical size of each input, or ``None`` for all equal.
    """
    found = strongest_products(weight, gate.unsqueeze(0), names, top, input_scale)
    return [replace(one, factors=factors) for one in found]


def frame_names(names: Sequence[str], frames: int, *, newest_last: bool = True) -> list[str]:
    """Name a stacked history, e.g. ``dq_left_knee[t-3]``; the current frame is ``[t]``.

    Args:
        names: Names of one frame.
        frames: How many frames are stacked.
        newest_last: Whether the current frame comes last (Humanoid-Gym) or first (BFM-Zero).
    """
    if frames < 1:
        raise InputError(f"frame_names: frames must be at least 1, got {frames}.")
    ages = range(frames - 1, -1, -1) if newest_last else range(frames)
    return [f"{name}[t-{age}]" if age else f"{name}[t]" for age in ages for name in names]
