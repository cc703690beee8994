"""Trained policies, loaded from run folders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from prism_motor.domains import open_run, require_domain
from prism_motor.locomotion.config import LocomotionConfig
from prism_motor.locomotion.ppo import make_actor
from prism_motor.runs import RunError
from prism_motor.runs.checkpoints import select


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
    require_domain(path, "locomotion", "this")
    run, _, config = open_run(path)
    checkpoint = run.load(step)
    actor = make_actor(config)
    weights = select(checkpoint.tensors, "actor.")
    try:
        actor.load_state_dict(weights)
    except RuntimeError as error:
        raise RunError(
            f"The checkpoint {checkpoint.step} of {run.path} does not fit the actor that its "
            f"config.json describes: {error}"
        ) from error
    actor.eval()
    return WalkingPolicy(config, checkpoint.step, actor, actor.as_onnx(verbose=False).eval())
