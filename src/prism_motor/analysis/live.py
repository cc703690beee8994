"""The strongest products of a policy while it acts, cheap enough for a live figure.

::

    top = TopInteractions(policy, 8)
    for name, value in top.update(observation): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor._checks import check_size
from prism_motor.analysis.explain.names import branch_forms, name_inputs, name_products
from prism_motor.analysis.explain.products import Products, WalkingProducts, products_of
from prism_motor.analysis.explain.removals import remove_each

if TYPE_CHECKING:
    from prism_motor.locomotion.policy import WalkingPolicy


class TopInteractions:
    """Follows a policy's strongest products, always the same ones in the same order.

    Args:
        policy: A policy with products; others are refused with a ``ValueError``.
        count: How many products.
        observations: States to choose them on, (N, observations), by how much the joint target
            changes without each. Default: by weights, for inputs as the normaliser knows them.

    Attributes:
        names: Their names, e.g. ``dq L knee (t) × clock sin (t-1)``; two may be alike.
        roles: What each is for.
    """

    def __init__(
        self, policy: WalkingPolicy, count: int = 8, observations: Tensor | None = None
    ) -> None:
        self._products = products_of(policy)
        count = min(check_size("TopInteractions", "count", count), self._products.count)
        if observations is not None:
            observations = observations.to(self._products.device)
        centre, scale = _typical(self._products, observations)
        with torch.no_grad():
            forms = branch_forms(self._products, centre if observations is None else observations)
            named = name_products(self._products, name_inputs(policy.config.task), forms, scale)
            if observations is None:
                strength = centre.new_tensor([product.strength for product in named])
                effect = strength * _gain(self._products, centre)
            else:
                changes = remove_each(self._products, self._products.read(observations))
                effect = changes.norm(dim=-1).mean(-1)
        chosen = effect.argsort(descending=True, stable=True)[:count]
        self.names = [str(named[i]) for i in chosen.tolist()]
        self.roles = [named[i].role for i in chosen.tolist()]
        self._chosen = chosen
        # The first row keeps everything, each of the others lacks one product.
        self._keep = effect.new_ones(count + 1, self._products.count)
        self._keep[torch.arange(1, count + 1, device=effect.device), chosen] = 0.0

    @torch.inference_mode()
    def update(self, observation: Tensor) -> list[tuple[str, float]]:
        """Return every product's name and current value.

        The value is the distance that the joint target would move without the product, rad, with
        the sign of the product.

        Args:
            observation: What the policy sees, (observations,).
        """
        parts = self._products.read(observation.unsqueeze(0))
        targets = self._products.targets(parts, self._products.features(parts, self._keep))
        distance = (targets[1:] - targets[0]).norm(dim=-1)
        sign = self._products.values(parts)[0, self._chosen].sign()
        return list(zip(self.names, (sign * distance).tolist(), strict=True))


def _typical(products: WalkingProducts, observations: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of every input, measured or from the normaliser."""
    if observations is not None:
        return observations.mean(0), observations.std(0)
    normaliser = products.actor.obs_normalizer
    zeros = torch.zeros(1, products.actor.obs_dim, device=products.device)
    with torch.no_grad():
        offset = normaliser(zeros).squeeze(0)
        slope = normaliser(zeros + 1).squeeze(0) - offset
    return -offset / slope, 1 / slope


def _gain(products: Products, centre: Tensor) -> Tensor:
    """Return how far a unit of every product moves the joint target at an observation."""
    parts = products.read(centre.unsqueeze(0))

    def targets(features: Tensor) -> Tensor:
        return products.targets(parts, features.unsqueeze(0)).squeeze(0)

    jacobian = torch.func.jacrev(targets)(products.features(parts).squeeze(0))
    assert isinstance(jacobian, Tensor)
    return jacobian.norm(dim=0).repeat(products.stages)
