"""The arms of the comparison: a front layer each, and the same kind of head behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from prism_motor._errors import InputError
from prism_motor.nn import count_parameters, make_interaction
from prism_motor.nn.checks import check_choice

_TOLERANCE = 0.01


@dataclass(frozen=True)
class Contender:
    """One arm: what stands in front of the head, and how large it may be."""

    name: str
    """Key in results.json and on the command line."""
    label: str
    """What people read."""
    interaction: str | None
    """Name in ``prism_motor.nn.INTERACTIONS``; ``None`` for a linear layer with activation."""
    degree: int = 2
    """Degree of the interaction layer."""
    budget_scale: float = 1.0
    """Parameters relative to the common budget."""

    def make(self, inputs: int, outputs: int, budget: int, head: int) -> nn.Sequential:
        """Build the network, the front as wide as the budget allows (within 1 %)."""
        target = round(budget * self.budget_scale)
        head = round(head * math.sqrt(self.budget_scale))
        width = self._width(inputs, outputs, target, head)
        network = self._network(inputs, outputs, width, head)
        count = count_parameters(network)
        if abs(count - target) > _TOLERANCE * target:
            raise InputError(
                f"{self.label}: no width comes within 1 % of {target:,} parameters with a head of "
                f"{head}; the nearest has {count:,}. Use a larger budget or another head."
            )
        return network

    def _network(self, inputs: int, outputs: int, width: int, head: int) -> nn.Sequential:
        if self.interaction is None:
            front = [nn.Linear(inputs, width), nn.SiLU()]
        else:
            front = [make_interaction(self.interaction, inputs, width, self.degree)]
        return nn.Sequential(
            *front,
            nn.Linear(width, head),
            nn.SiLU(),
            nn.Linear(head, head),
            nn.SiLU(),
            nn.Linear(head, outputs),
        )

    def _width(self, inputs: int, outputs: int, target: int, head: int) -> int:
        """Find the front's width whose parameter count is nearest to ``target``."""

        def miss(width: int) -> int:
            return count_parameters(self._network(inputs, outputs, width, head)) - target

        low, high = 1, 2
        while miss(high) < 0:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if miss(middle) < 0 else (low, middle)
        return min((low, high), key=lambda width: abs(miss(width)))


CONTENDERS: tuple[Contender, ...] = (
    Contender("mlp", "MLP", None),
    Contender("mlp2x", "MLP, twice the size", None, budget_scale=2.0),
    Contender("prism1", "PRISM degree 1 (linear)", "gated", degree=1),
    Contender("prism2", "PRISM degree 2", "gated", degree=2),
    Contender("prism3", "PRISM degree 3", "gated", degree=3),
    Contender("product", "Ungated product", "product"),
    Contender("ccp", "CCP (Π-net)", "ccp"),
    Contender("glu", "GLU", "glu"),
    Contender("explicit", "Explicit monomials", "explicit"),
)
"""All arms. ``linear`` of ``prism_motor.nn.INTERACTIONS`` is PRISM of degree 1."""


def choose_contenders(names: Iterable[str]) -> tuple[Contender, ...]:
    """Return the arms of these names in the order of :data:`CONTENDERS`; all for no names."""
    by_name = {contender.name: contender for contender in CONTENDERS}
    wanted = {check_choice("arm", name, by_name) for name in names}
    return tuple(c for c in CONTENDERS if c.name in wanted or not wanted)
