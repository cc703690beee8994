"""The learned products of the filter in front of a tracking actor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.analysis.explain.names import InputName, parse_input
from prism_motor.analysis.explain.products import LayerProducts, Parts
from prism_motor.nn import PolynomialConditioner, PolynomialLayer
from prism_motor.tracking.learning.networks import ACTOR_STREAMS
from prism_motor.tracking.observations import HISTORY

if TYPE_CHECKING:
    from prism_motor.tracking.loading import LoadedPolicy


class FilterProducts(LayerProducts):
    """Products of the polynomial over the history; rows are the actor's streams, then the latent.

    Args:
        loaded: The policy; it is not changed.
        conditioner: Its filter.
    """

    def __init__(self, loaded: LoadedPolicy, conditioner: PolynomialConditioner) -> None:
        assert isinstance(conditioner.interaction, PolynomialLayer)
        policy = loaded.policy
        super().__init__(conditioner.interaction, policy.normaliser.mean.device)
        self._policy, self._filter = policy, conditioner
        self._units = torch.tensor(loaded.config.task.units, device=self.device)
        layout = policy.layout
        self.seen = layout.width(ACTOR_STREAMS)
        before = layout.width(ACTOR_STREAMS[: ACTOR_STREAMS.index(HISTORY)])
        self.history = slice(before, before + layout.sizes[HISTORY])

    def rows(self, observations: Tensor, latents: Tensor) -> Tensor:
        """Return whole raw observations (N, size) and latents as rows."""
        chosen = self._policy.layout.select(observations, ACTOR_STREAMS)
        return torch.cat([chosen, latents], dim=1).to(self.device)

    def read(self, observations: Tensor) -> Parts:
        """Compute what the products are made of, from rows."""
        rows = observations.to(self.device)
        normal = self._policy.normaliser(rows[:, : self.seen], ACTOR_STREAMS)
        history = self._filter.input_norm(normal[:, self.history])
        inputs = torch.cat([normal, rows[:, self.seen :]], dim=1)
        return Parts(inputs, tuple(self.layer.factors(history)))

    def targets(self, parts: Parts, features: Tensor) -> Tensor:
        """Return how far interaction features move the joint targets off the default pose, rad."""
        return self._units * self.act(parts, features)

    def act(self, parts: Parts, features: Tensor) -> Tensor:
        """Return the actions that interaction features lead to."""
        conditioner, actor = self._filter, self._policy.actor
        inner = conditioner.latent_norm(features)
        filtered = conditioner.output_norm(conditioner.projection(inner))
        normal, latents = parts.inputs[:, : self.seen], parts.inputs[:, self.seen :]
        before, after = normal[:, : self.history.start], normal[:, self.history.stop :]
        return actor.act(actor.join(torch.cat([before, filtered, after], dim=1), latents))

    def names(self) -> list[InputName]:
        """Return the names of the entries of the history."""
        return [parse_input(name) for name in self._policy.layout.names[HISTORY]]


def filter_products(loaded: LoadedPolicy) -> FilterProducts:
    """Return the products of a policy's filter, or raise and say why it has none."""
    found = loaded.policy.actor.inputs.filter
    arm = loaded.config.arm
    if isinstance(found, PolynomialConditioner):
        layer = found.interaction
        if isinstance(layer, PolynomialLayer) and layer.degree > 1:
            return FilterProducts(loaded, found)
        reason = "its filter has degree 1 and is linear"
    elif found is None:
        reason = "it has no filter of the history"
    else:
        reason = "its filter is an MLP, which forms no explicit products"
    raise InputError(
        f"The policy ({arm}) has no learned products to explain: {reason}. Give a run with "
        "networks.filter prism and a degree of at least 2, as the arm prism has."
    )
