"""Readable names for every input of the actor and every learned product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor.locomotion.observations import actor_names

if TYPE_CHECKING:
    from prism_motor.analysis.explain.products import Products
    from prism_motor.locomotion.task import LeggedTaskConfig

_GRAVITY = ("gravity_x", "gravity_y", "gravity_z")
_KEYS = {
    "gait clock": ("clock_sin", "clock_cos"),
    "command": ("command_forward", "command_sideways", "command_yaw"),
    "joint position": ("q_",),
    "joint velocity": ("dq_",),
    "last action": ("action_",),
    "angular velocity": ("gyro_x", "gyro_y", "gyro_z"),
    "orientation": ("roll", "pitch", "yaw", *_GRAVITY),
}
"""Groups by name, with the prefixes of their inputs in the observation."""

GROUPS = tuple(_KEYS)
"""Input groups in the order of the observation."""

_SYMBOLS = {
    "gait clock": "clock",
    "command": "command",
    "joint position": "q",
    "joint velocity": "dq",
    "last action": "action",
    "angular velocity": "gyro",
    "orientation": "",
}


_ROWS = 32
"""Outputs whose derivatives are taken at once."""


@dataclass(frozen=True)
class InputName:
    """One input of the actor."""

    key: str
    """Its name as a column of an observation, e.g. ``dq_left_knee[t-3]``."""
    group: str
    """One of :data:`GROUPS`."""
    part: str
    """Which joint, axis or component, e.g. ``left knee``."""
    lag: int
    """Control steps ago; 0 is the current frame."""

    @property
    def when(self) -> str:
        """The frame: ``(t)`` or ``(t-3)``."""
        return f"(t-{self.lag})" if self.lag else "(t)"

    def __str__(self) -> str:
        parts = (_SYMBOLS[self.group], self.part.replace("left", "L").replace("right", "R"))
        return f"{' '.join(word for word in parts if word)} {self.when}"


def name_inputs(task: LeggedTaskConfig) -> list[InputName]:
    """Name every actor input of a task, in the order of the observation."""
    return [parse_input(key) for key in actor_names(task)]


def parse_input(key: str) -> InputName:
    """Return the input that a column of an observation is, by its name."""
    name, _, frame = key.rstrip("]").partition("[")
    lag = int(frame.removeprefix("t").removeprefix("-") or 0)
    for group, starts in _KEYS.items():
        for start in starts:
            if start.endswith("_") and name.startswith(start):
                return InputName(key, group, name.removeprefix(start).replace("_", " "), lag)
            if name in _GRAVITY and name == start:
                return InputName(key, group, name.replace("_", " "), lag)
            if name == start:
                return InputName(key, group, name.rpartition("_")[2], lag)
    raise AssertionError(f"{key} belongs to no group; add it to the table of groups.")


_BODY = ("angular velocity", "orientation")
_STATE = ("joint position", "joint velocity", *_BODY)

# In order: the first line that fits both groups gives the role.
_ROLES: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("joint position",), ("joint velocity",), "state-velocity coupling"),
    (("joint position",), ("joint position",), "posture coupling"),
    (_BODY, _BODY, "body-motion coupling"),
    (_BODY, ("joint position", "joint velocity"), "body-joint coupling"),
    (("command",), _STATE, "command-state coupling"),
    (("last action",), _STATE, "action-state coupling"),
    (("last action",), ("last action",), "action memory"),
    (("command",), ("last action",), "command-action coupling"),
    (("command",), ("command",), "command coupling"),
    (("gait clock",), GROUPS, "gait-phase coupling"),
)


def role_of(inputs: Sequence[InputName]) -> str:
    """Return what a product of two inputs is for, in the paper's terms where it has them.

    Joint velocities of different frames make a velocity memory, of one frame a joint-velocity
    coupling. A product of more than two inputs has the role of the first two.
    """
    first, second = inputs[:2]
    if first.group == second.group == "joint velocity":
        return "velocity memory" if first.lag != second.lag else "joint-velocity coupling"
    for one, other, role in _ROLES:
        if (first.group in one and second.group in other) or (
            second.group in one and first.group in other
        ):
            return role
    raise AssertionError(f"No role for {first.group} with {second.group}; add it to the table.")


@dataclass(frozen=True)
class NamedProduct:
    """One product, named by the input with the largest weight of each of its branches."""

    index: int
    """Which product of the policy."""
    feature: str
    """Which latent feature it belongs to, and which stage of the residual actor."""
    inputs: tuple[InputName, ...]
    """The input with the largest weight of each branch, found independently: squares can occur."""
    share: float
    """How much of the branches' weight the names cover: mean of max(w^2) / sum(w^2)."""
    strength: float
    """Size of the product by its weights, for inputs of typical size."""

    @property
    def role(self) -> str:
        """What the product of the first two inputs is for."""
        return role_of(self.inputs)

    def __str__(self) -> str:
        return " × ".join(map(str, self.inputs))


def branch_forms(products: Products, observations: Tensor) -> Tensor:
    """Return the first-order part of every branch in raw observations, normaliser folded in.

    Branches that are affine in the observation have one. Products of higher degree are expanded
    about the mean observation. Hidden layers in front of the products (``prism-after``) are
    linearised: the form is the mean of the slopes at the observations, which for normally
    distributed inputs is also the best linear approximation.

    Args:
        products: The products.
        observations: States that the policy visits, (N, inputs), or a typical one, (inputs,).

    Returns:
        (branches, count, inputs).
    """
    states = torch.atleast_2d(observations)
    states = states.mean(0, keepdim=True) if products.affine else states
    return mean_slope(lambda one: products.branches(products.read(one)), states)


def mean_slope(function: Callable[[Tensor], Tensor], states: Tensor) -> Tensor:
    """Return the mean over states (N, inputs) of a function's derivative, (..., inputs).

    Args:
        function: Maps (N, inputs) to (N, ...), each row by itself.
        states: Where the derivative is taken.
    """

    def mean(shift: Tensor) -> Tensor:
        return function(states + shift).mean(0)

    slopes = torch.func.jacrev(mean, chunk_size=_ROWS)(torch.zeros_like(states[0]))
    assert isinstance(slopes, Tensor)
    return slopes.detach()


def name_products(
    products: Products, names: Sequence[InputName], forms: Tensor, scale: Tensor
) -> list[NamedProduct]:
    """Name every product of a policy.

    Args:
        products: The products.
        names: One name per input.
        forms: From :func:`branch_forms`.
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
