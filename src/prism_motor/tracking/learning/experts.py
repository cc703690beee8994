"""Expert frames: windows for updates, stretches for rollouts, clips drawn by priority."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prism_motor._checks import InputError


@dataclass(frozen=True)
class ExpertClip:
    """A motion clip as it is learned from."""

    name: str
    """Its name."""
    observations: Tensor
    """Observations of its frames (T, size)."""
    actions: Tensor | None = None
    """What would drive the robot from each frame to the next (T, actions), for cloning."""


@dataclass(frozen=True)
class ExpertBatch:
    """Windows of consecutive frames, end to end."""

    observation: Tensor
    """The frames (N, size)."""
    next_observation: Tensor
    """Their successors (N, size)."""


def clip_priority(emd: float) -> float:
    """Return how often a clip is drawn that is tracked with this EMD: 2 to 16."""
    return 2.0 ** (2.0 * min(max(emd, 0.5), 2.0))


class ExpertClips:
    """All clips of a run, end to end.

    Args:
        clips: The clips.
        window: Frames per window; every clip needs one more, for the last successor.
        device: Where they are kept.

    Attributes:
        names: Names of the clips.
        observations: All frames (T, size).
        actions: What drives each to the next (T, actions), if the clips have it.
    """

    def __init__(
        self, clips: Sequence[ExpertClip], window: int, device: torch.device | str = "cpu"
    ) -> None:
        if not clips:
            raise InputError("Training needs at least one motion clip.")
        short = [clip for clip in clips if len(clip.observations) <= window]
        if short:
            found = ", ".join(f"{clip.name} ({len(clip.observations)})" for clip in short)
            raise InputError(
                f"Clips need at least {window + 1} frames, {window} and the successor of the last; "
                f"too short: {found}. Leave them out."
            )
        bad = [clip.name for clip in clips if not torch.isfinite(clip.observations).all()]
        if bad:
            raise InputError(f"Clips with values that are not finite: {', '.join(bad)}.")
        self.names = tuple(clip.name for clip in clips)
        self._window = window
        self.observations = torch.cat([clip.observations for clip in clips]).to(device)
        with_actions = [clip.actions for clip in clips if clip.actions is not None]
        complete = len(with_actions) == len(clips)
        self.actions = torch.cat(with_actions).to(device) if complete else None
        self._lengths = torch.tensor([len(clip.observations) for clip in clips], device=device)
        self._starts = torch.cumsum(self._lengths, 0) - self._lengths
        self.priorities = torch.full((len(clips),), 1 / len(clips), device=device)

    @property
    def has_actions(self) -> bool:
        """Whether every clip comes with actions."""
        return self.actions is not None

    def prioritise(self, emd: Mapping[str, float]) -> None:
        """Draw clips by how badly they are tracked: EMD by name, of all clips."""
        missing = [name for name in self.names if name not in emd]
        if missing:
            raise InputError(f"Priorities need the EMD of every clip; missing: {missing}.")
        priorities = torch.tensor([clip_priority(emd[name]) for name in self.names])
        self.priorities = (priorities / priorities.sum()).to(self.priorities)

    def sample(self, count: int, generator: torch.Generator) -> ExpertBatch:
        """Draw ``count`` frames in windows: the clip by priority, its start uniformly."""
        first = self._draw(count // self._window, self._window, self.priorities, generator)
        steps = torch.arange(self._window, device=first.device)
        frames = (first.unsqueeze(1) + steps).flatten()
        return ExpertBatch(
            self.observations.index_select(0, frames), self.observations.index_select(0, frames + 1)
        )

    def stretches(self, count: int, steps: int, generator: torch.Generator) -> Tensor | None:
        """Draw the successors' observations (count, steps, size) along stretches of clips.

        Clips of no more frames than ``steps`` are left out; without any other there is ``None``.
        """
        weights = self.priorities * (self._lengths > steps)
        if not weights.any():
            return None
        first = self._draw(count, steps, weights, generator)
        frames = first.unsqueeze(1) + torch.arange(1, steps + 1, device=first.device)
        return self.observations[frames]

    def _draw(self, count: int, frames: int, weights: Tensor, generator: torch.Generator) -> Tensor:
        """Draw first frames of pieces of ``frames`` frames that have successors."""
        clips = torch.multinomial(weights, count, replacement=True, generator=generator)
        room = (self._lengths - frames)[clips]
        drawn = torch.rand(count, generator=generator, device=room.device, dtype=torch.float64)
        return self._starts[clips] + (drawn * room).long().clamp(max=room - 1)
