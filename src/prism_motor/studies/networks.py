"""The networks that studies compare: a backbone, and where products enter it.

All have four layers: a front, two hidden layers of the head, and a linear output. Products replace
the front (a linear layer with SiLU in plain MLPs), the last hidden layer, or both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar

import torch
from torch import nn

from prism_motor._checks import InputError, check_choice
from prism_motor.nn import INTERACTIONS, count_parameters
from prism_motor.studies.normalised import UnitPolynomial
from prism_motor.studies.temporal import History, make_temporal

_TOLERANCE = 0.01
"""Allowed relative deviation from the parameter budget."""

_HEADS = 0.5
"""How far a head of free width may be from its proportion, as a share."""

LAYERS: dict[str, Any] = {**INTERACTIONS, "unit": UnitPolynomial}
"""Interaction layers by name: those of the package, and variants that only studies have."""


@dataclass(frozen=True)
class StudyArm:
    """One network of a comparison."""

    name: str
    """Key in records and on the command line."""
    label: str
    """Name for readers."""
    interaction: str | None = None
    """Name in :data:`LAYERS`; ``None`` for linear layers with activation everywhere."""
    degree: int = 2
    """Degree of the interaction layer."""
    position: Literal["front", "after", "both"] = "front"
    """Where it is: in front of the head, in place of its last hidden layer, or both."""
    gate_init: float | None = None
    """Initial gates; ``None`` for those of the layer."""
    gate_rate: float = 1.0
    """Learning rate of the gates relative to that of all other parameters."""
    gate_cost: float = 0.0
    """How fast gates close that the loss does not hold open, relative to the learning rate."""
    budget_scale: float = 1.0
    """Parameters relative to the common budget."""
    backbone_only: bool = False
    """Whether there is no front layer; such a network has the head's size, not the budget's."""
    window: int = 0
    """Products of so many neighbouring frames, with weights shared over time; 0 for none. Such an
    arm needs inputs with a history."""

    def make(
        self,
        inputs: int,
        outputs: int,
        budget: int,
        head: int | None = None,
        history: History = (),
    ) -> nn.Sequential:
        """Build the network, with a front as wide as the budget allows (within 1 %).

        Args:
            inputs: Size of the input.
            outputs: Size of the output.
            budget: Number of parameters.
            head: Width of the two hidden layers behind the front; by default about half the root
                of the budget, whatever comes within 1 %.
            history: Which inputs are frames of a history, for arms with a window.
        """
        width, head = self.widths(inputs, outputs, budget, head, history)
        return self.build(inputs, outputs, width, head, history)

    @cache  # noqa: B019 - arms are constants
    def widths(
        self,
        inputs: int,
        outputs: int,
        budget: int,
        head: int | None = None,
        history: History = (),
    ) -> tuple[int, int]:
        """Return the widths of front and head for a budget; raise if none comes within 1 %."""
        target = round(budget * self.budget_scale)
        if head is not None:
            heads = [round(head * math.sqrt(self.budget_scale))]
        else:
            middle = math.sqrt(target) / 2
            low, high = max(1, round((1 - _HEADS) * middle)), round((1 + _HEADS) * middle)
            heads = sorted(range(low, high + 1), key=lambda h: abs(h - middle))
        if self.backbone_only:
            return 0, heads[0]
        best, least = (0, 0), math.inf
        for head in heads:
            width = self._width(inputs, outputs, target, head, history)
            miss = abs(self._count(inputs, outputs, width, head, history) - target)
            if miss < least:
                best, least = (width, head), miss
            if least <= _TOLERANCE * target:
                return best
        raise InputError(
            f"{self.label}: no width comes within 1 % of {target:,} parameters with a head of "
            f"{best[1]}; the nearest has {self._count(inputs, outputs, *best, history):,}. "
            "Use a larger budget or another head."
        )

    def build(
        self, inputs: int, outputs: int, width: int, head: int, history: History = ()
    ) -> nn.Sequential:
        """Build the network with given widths."""
        front: list[nn.Module] = []
        if self.window:
            front = [self._temporal(inputs, width, history)]
        elif not self.backbone_only:
            front = self._hidden(inputs, width, self.position in ("front", "both"))
        return nn.Sequential(
            *front,
            nn.Linear(inputs if self.backbone_only else width, head),
            nn.SiLU(),
            *self._hidden(head, head, self.position in ("after", "both")),
            nn.Linear(head, outputs),
        )

    def _temporal(self, inputs: int, outputs: int, history: History) -> nn.Module:
        if len(history) < self.window:
            raise InputError(
                f"{self.label}: needs inputs with a history of at least {self.window} frames, got "
                f"{len(history)}."
            )
        return make_temporal(
            history,
            inputs,
            outputs,
            window=self.window,
            degree=self.degree,
            scaled=self.interaction == "scaled",
        )

    def _hidden(self, inputs: int, outputs: int, products: bool) -> list[nn.Module]:
        if self.interaction is None or not products:
            return [nn.Linear(inputs, outputs), nn.SiLU()]
        options: dict[str, Any] = {"degree": self.degree}
        if self.gate_init is not None:
            options["gate_init"] = self.gate_init
        return [LAYERS[self.interaction](inputs, outputs, **options)]

    def _count(self, inputs: int, outputs: int, width: int, head: int, history: History) -> int:
        with torch.random.fork_rng(devices=[]):  # the search must not change the weights
            return count_parameters(self.build(inputs, outputs, width, head, history))

    def _width(self, inputs: int, outputs: int, target: int, head: int, history: History) -> int:
        """Find the front's width whose parameter count is nearest to ``target``."""

        def miss(width: int) -> int:
            return self._count(inputs, outputs, width, head, history) - target

        low, high = 1, 2
        while miss(high) < 0:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if miss(middle) < 0 else (low, middle)
        return min((low, high), key=lambda width: abs(miss(width)))


Arm = TypeVar("Arm", bound=StudyArm)


def choose_arms(
    arms: tuple[Arm, ...], names: Iterable[str], aliases: dict[str, str] | None = None
) -> tuple[Arm, ...]:
    """Return the arms of these names in the order of ``arms``; all for no names."""
    by_name = {arm.name: arm for arm in arms}
    former = aliases or {}
    wanted = {check_choice("arm", former.get(name, name), by_name) for name in names}
    return tuple(arm for arm in arms if arm.name in wanted or not wanted)
