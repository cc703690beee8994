"""Gradual activation: the polynomial branch fades in over the first optimiser updates.

The update count is a buffer, so it is saved in checkpoints and a resumed run continues from there.
Advance it once per update, by hand or by following an optimiser::

    layer = PolynomialLayer(16, 64, warmup=500)
    follow_optimizer(layer, optimizer)      # every optimizer.step() counts one update
"""

from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from prism_motor._checks import InputError


class Warmup(nn.Module):
    """A scale that rises linearly from 0 to 1 over ``updates`` calls of :meth:`advance`.

    Args:
        updates: Number of updates until the scale reaches one.
        device: Device of the counter.

    State: ``count``, an int64 scalar (integers survive ``.half()`` and ``.bfloat16()`` unchanged).
    """

    count: Tensor
    updates: Final[int]

    def __init__(self, updates: int, device: torch.device | str | None = None) -> None:
        super().__init__()
        if isinstance(updates, bool) or not isinstance(updates, int) or updates < 1:
            raise InputError(
                f"Warmup: updates must be an integer >= 1, got {updates!r}. "
                "Use warmup=0 on the layer for no warm-up."
            )
        self.updates = updates
        self.register_buffer("count", torch.zeros((), dtype=torch.int64, device=device))

    def forward(self) -> Tensor:
        """Return the current scale, a float scalar in [0, 1]."""
        return (self.count.to(torch.float32) / self.updates).clamp(max=1.0)

    @torch.jit.unused
    def advance(self, updates: int = 1) -> None:
        """Count ``updates`` optimiser updates."""
        self.count += updates

    def extra_repr(self) -> str:  # noqa: D102
        return f"updates={self.updates}"


def advance_warmup(model: nn.Module, updates: int = 1) -> None:
    """Count ``updates`` optimiser updates in every :class:`Warmup` of ``model``."""
    for module in model.modules():
        if isinstance(module, Warmup):
            module.advance(updates)


def follow_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer) -> RemovableHandle:
    """Advance every warm-up of ``model`` by one at each ``optimizer.step()``; returns a handle."""

    def after_step(_optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        advance_warmup(model)

    return optimizer.register_step_post_hook(after_step)
