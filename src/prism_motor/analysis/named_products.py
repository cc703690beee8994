"""Learned products by the names of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prism_motor.analysis.names import InputName, role_of
from prism_motor.analysis.products import Products


@dataclass(frozen=True)
class NamedProduct:
    """One product, named by the input with the largest weight of each of its branches."""

    index: int
    """Which product of the policy."""
    feature: str
    """Which latent feature it belongs to, and which stage of the residual actor."""
    inputs: tuple[InputName, ...]
    """The input with the largest weight of each branch, found independently: squares stay."""
    share: float
    """How much of the branches' weight the names stand for: mean of max(w^2) / sum(w^2)."""
    strength: float
    """Size of the product by its weights alone, for inputs of typical size."""

    @property
    def role(self) -> str:
        """What the product of the first two inputs is for."""
        return role_of(self.inputs)

    def __str__(self) -> str:
        return " × ".join(map(str, self.inputs))


def branch_forms(products: Products, centre: Tensor) -> Tensor:
    """Return the first-order part of every branch in raw observations, normaliser folded in.

    Args:
        products: The products.
        centre: The observation to expand about; only branches that are not linear depend on it.

    Returns:
        (branches, count, inputs).
    """

    def branches(observation: Tensor) -> Tensor:
        return products.branches(products.read(observation.unsqueeze(0))).squeeze(0)

    forms = torch.func.jacrev(branches)(centre)
    assert isinstance(forms, Tensor)
    return forms.detach()


def name_products(
    products: Products, names: Sequence[InputName], forms: Tensor, scale: Tensor
) -> list[NamedProduct]:
    """Name every product of a policy.

    Args:
        products: The products.
        names: One name per input.
        forms: Of :func:`branch_forms`.
        scale: Typical size of every input; makes weights of inputs in different units comparable.
    """
    scaled = forms * scale
    squares = scaled.square()
    total = squares.sum(-1).clamp_min(1e-30)  # (branches, count)
    largest, dominant = squares.max(-1)
    share = (largest / total).mean(0)
    # The first branch times what its partners add to one, in quadrature.
    strength = (total[0] * total[1:].sum(0)).sqrt()
    return [
        NamedProduct(
            index=index,
            feature=products.label(index),
            inputs=tuple(names[i] for i in dominant[:, index].tolist()),
            share=float(share[index]),
            strength=float(strength[index]),
        )
        for index in range(products.count)
    ]
