"""Products of what a robot sensed at neighbouring moments, with weights shared over time."""

import math
from typing import Final

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError, check_degree, check_size
from prism_motor.nn.alternatives import ScaledPolynomialLayer
from prism_motor.nn.polynomial import PolynomialLayer


class TemporalPolynomialLayer(nn.Module):
    r"""An estimate from a history times the present state, as features.

    .. code-block:: text

        e_t = products of the frames t .. t + window - 1, with the same weights at every t
        m   = sum over t of average_t * e_t
        psi = m * (1 + gate * (W now + b)),    now: the newest frame, and inputs behind the history

    Sums of products over time are what least squares reads off a history (a mass from forces and
    accelerations, say), and a control law multiplies them with a state. The number of weights does
    not grow with the number of frames, but for one average per frame and feature.

    Args:
        frames: Number of frames in the input.
        frame_features: Size of a frame.
        out_features: Number of features.
        degree: Highest degree of the products of frames, at least 1.
        window: How many neighbouring frames are multiplied with each other; at least as many as
            the longest delay of the plant spans. ``None``: 4, or all of a shorter history.
        extra_features: Size of what follows the history in the input and is not part of it.
        gate_init: Initial value of every gate.
        scaled: Whether later factors of frames are divided by their root mean square
            (:class:`ScaledPolynomialLayer`): as good on what was trained, better beyond it.

    Shape: (..., frames * frame_features + extra_features) -> (..., out_features), the oldest frame
    first. :func:`frame_names` names such inputs.
    """

    frames: Final[int]
    window: Final[int]

    def __init__(
        self,
        frames: int,
        frame_features: int,
        out_features: int,
        degree: int = 2,
        *,
        window: int | None = None,
        extra_features: int = 0,
        gate_init: float = 1.0,
        scaled: bool = True,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.frames = check_size(owner, "frames", frames)
        self.frame_features = check_size(owner, "frame_features", frame_features)
        self.out_features = check_size(owner, "out_features", out_features)
        self.degree = check_degree(owner, degree)
        self.window = min(4, frames) if window is None else check_size(owner, "window", window)
        if self.window > frames:
            raise InputError(
                f"{owner}: window must be at most the number of frames, {frames}, got {window}."
            )
        if not isinstance(extra_features, int) or extra_features < 0:
            raise InputError(f"{owner}: extra_features must be 0 or more, got {extra_features!r}.")
        if not math.isfinite(gate_init):
            raise InputError(f"{owner}: gate_init must be finite, got {gate_init}.")
        self.extra_features = extra_features
        self.in_features = frames * frame_features + extra_features
        self.gate_init = gate_init
        layer = ScaledPolynomialLayer if scaled else PolynomialLayer
        self.products = layer(
            self.window * frame_features, out_features, degree, gate_init=gate_init
        )
        self.average = nn.Parameter(torch.empty(frames - self.window + 1, out_features))
        self.state = nn.Linear(frame_features + extra_features, out_features)
        self.gate = nn.Parameter(torch.empty(out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-draw the weights; every moment counts alike, and sums keep the scale of a moment."""
        self.products.reset_parameters()
        self.state.reset_parameters()
        nn.init.zeros_(self.state.bias)
        nn.init.constant_(self.average, len(self.average) ** -0.5)
        nn.init.constant_(self.gate, self.gate_init)

    def estimate(self, x: Tensor) -> Tensor:
        """Return what the history alone says, (..., in_features) -> (..., out_features)."""
        return (self.products(self._windows(x)) * self.average).sum(-2)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        newest = x[..., (self.frames - 1) * self.frame_features :]
        return self.estimate(x) * (1 + self.gate * self.state(newest))

    def _windows(self, x: Tensor) -> Tensor:
        """Return neighbouring frames beside each other: (..., moments, window * size)."""
        if x.size(-1) != self.in_features:
            raise InputError(
                f"Expected an input of shape (..., {self.in_features}): {self.frames} frames of "
                f"{self.frame_features}, then {self.extra_features} more; got {list(x.shape)}."
            )
        history = x[..., : self.frames * self.frame_features]
        history = history.unflatten(-1, (self.frames, self.frame_features))
        moments = self.frames - self.window + 1
        return torch.cat([history[..., i : i + moments, :] for i in range(self.window)], dim=-1)

    def extra_repr(self) -> str:  # noqa: D102
        return (
            f"frames={self.frames}, frame_features={self.frame_features}, "
            f"out_features={self.out_features}, degree={self.degree}, window={self.window}, "
            f"extra_features={self.extra_features}"
        )
