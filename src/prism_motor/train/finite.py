"""Stops training at the first NaN or infinity and says where it came from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from prism_motor._checks import PrismError


class NonFiniteTrainingError(PrismError, FloatingPointError):
    """Something became NaN or infinite during training."""


def check(what: str, values: Tensor) -> None:
    """Raise if some values are not finite.

    Args:
        what: What they are, e.g. ``the action's mean``.
        values: The values.
    """
    values = values.detach()
    # Summing is many times faster than looking at each value; only a sum that is not finite needs
    # a closer look, because finite values may overflow.
    if math.isfinite(values.sum()):
        return
    bad = values[~torch.isfinite(values)]
    if len(bad):
        some = f" ({len(bad)} of {values.numel()} values are not finite)" if values.dim() else ""
        raise NonFiniteTrainingError(f"{what} is {bad[0].item()}{some}")


def check_numbers(what: str, numbers: Mapping[str, float]) -> None:
    """Raise if one of some named numbers is not finite."""
    for name, value in numbers.items():
        if not math.isfinite(value):
            raise NonFiniteTrainingError(f"{what} '{name}' is {value}")


def check_observations(observations: Iterable[tuple[str, Tensor]]) -> None:
    """Check what the environment shows, by environment."""
    for name, values in observations:
        if not torch.isfinite(values).all():
            env, entry = (~torch.isfinite(values)).nonzero()[0].tolist()
            raise NonFiniteTrainingError(
                f"observation '{name}' of environment {env}, entry {entry}, is "
                f"{values[env, entry].item()}"
            )


def check_rewards(rewards: Tensor) -> None:
    """Check the reward of every environment."""
    if not torch.isfinite(rewards).all():
        env = int((~torch.isfinite(rewards)).nonzero()[0])
        raise NonFiniteTrainingError(f"reward of environment {env} is {rewards[env].item()}")


def check_gradients(models: Mapping[str, nn.Module]) -> None:
    """Raise if a gradient is not finite, and name its parameter."""
    _check_all("gradient", ((n, p.grad) for n, p in _parameters(models) if p.grad is not None))


def check_weights(models: Mapping[str, nn.Module]) -> None:
    """Raise if a parameter or buffer is not finite, and name it."""
    buffers = ((f"{t}.{n}", b) for t, m in models.items() for n, b in m.named_buffers())
    floats = [(name, value) for name, value in buffers if value.is_floating_point()]
    _check_all("weight", [*_parameters(models), *floats])


_LARGEST_RATE = torch.finfo(torch.float32).max / 1e3
"""Torch refuses larger learning rates, divided by what corrects the bias of Adam's moments."""


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Raise if a learning rate, or a moment that an optimiser keeps, is not finite."""
    for rate in (group["lr"] for group in optimizer.param_groups):
        if not abs(rate) <= _LARGEST_RATE:
            raise NonFiniteTrainingError(f"the learning rate is {float(rate):g}")
    entries = (
        (f"parameter {index}, {key}", value)
        for index, state in enumerate(optimizer.state.values())
        for key, value in state.items()
        if isinstance(value, Tensor) and value.is_floating_point()
    )
    _check_all("optimiser state", entries)


def explain(error: NonFiniteTrainingError, models: Mapping[str, nn.Module], place: str = "") -> str:
    """Describe an error with its place and, if there is one, the weight that explains it."""
    try:
        check_weights(models)
    except NonFiniteTrainingError as cause:
        if str(cause) != str(error):
            return f"{error}{place}, because {cause}"
    return f"{error}{place}"


class StepWatch:
    """Stops an optimiser at the first gradient or weight that is not finite.

    Gradients are looked at as they arise, so that the parameter is named before clipping spreads a
    NaN to all others. The optimiser stops in its step, which data-parallel processes reach
    together.

    Args:
        models: The networks by name.
        optimizer: Their optimiser.

    Attributes:
        steps: Steps taken; set it to 0 to count anew.
    """

    def __init__(self, models: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer) -> None:
        self.steps = 0
        self._models, self._optimizer = models, optimizer
        self._first: NonFiniteTrainingError | None = None
        for name, parameter in _parameters(models):
            if parameter.requires_grad:
                look: Callable[[Tensor], None] = partial(self._look, name)
                parameter.register_post_accumulate_grad_hook(look)
        optimizer.register_step_pre_hook(self._before)
        optimizer.register_step_post_hook(self._after)

    def _look(self, name: str, parameter: Tensor) -> None:
        if self._first is None and parameter.grad is not None:
            try:
                check(f"gradient '{name}'", parameter.grad)
            except NonFiniteTrainingError as error:
                self._first = error

    def _before(self, *_: Any) -> None:
        first, self._first = self._first, None
        if first is not None:
            raise first
        check_gradients(self._models)  # those of other processes are part of it by now
        check_optimizer(self._optimizer)

    def _after(self, *_: Any) -> None:
        check_weights(self._models)
        self.steps += 1


def _parameters(models: Mapping[str, nn.Module]) -> Iterator[tuple[str, nn.Parameter]]:
    for title, model in models.items():
        for name, parameter in model.named_parameters():
            yield f"{title}.{name}", parameter


def _check_all(kind: str, named: Iterable[tuple[str, Tensor]]) -> None:
    """Check many tensors at once, and only if that fails each of them."""
    listed = [(name, value.detach()) for name, value in named]
    if not math.isfinite(get_total_norm(value for _, value in listed)):
        for name, value in listed:
            check(f"{kind} '{name}'", value)
