"""Trained policies, loaded from run folders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from prism_motor.locomotion.config import LocomotionConfig
from prism_motor.locomotion.ppo import make_actor
from prism_motor.runs.checkpoints import select
from prism_motor.train.loading import open_trained


@dataclass(frozen=True)
class WalkingPolicy:
    """A trained policy: observation history to action mean."""

    config: LocomotionConfig
    """How it was trained."""
    step: int
    """Policy updates it was trained for."""
    actor: Any
    """The rsl_rl model with its trained weights, in evaluation mode."""
    module: nn.Module
    """Normaliser, encoder and MLP as one module: (N, observations) -> (N, actions)."""

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.actor.parameters()).device

    def to(self, device: str | torch.device) -> WalkingPolicy:
        """Move it to a device."""
        return replace(self, actor=self.actor.to(device), module=self.module.to(device))

    @torch.inference_mode()
    def __call__(self, observations: Tensor) -> Tensor:
        """Return the mean action where the observations are, from wherever it computes."""
        return self.module(observations.to(self.device)).to(observations.device)


def load_policy(path: str | Path, step: int | None = None) -> WalkingPolicy:
    """Load a policy from a run folder.

    Args:
        path: The run folder, or the name of a shipped policy.
        step: Which checkpoint; the newest by default.
    """
    run = open_trained(path, "locomotion", step)
    actor = make_actor(run.config)
    with run.loading("actor"):
        actor.load_state_dict(select(run.checkpoint.tensors, "actor."))
    module = actor.eval().as_onnx(verbose=False).eval()
    return WalkingPolicy(run.config, run.checkpoint.step, actor, module)
