"""Trained policies, loaded from run folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from prism_motor.locomotion.config import TrainConfig
from prism_motor.locomotion.ppo import make_actor
from prism_motor.runs import Run, RunError, from_dict


@dataclass(frozen=True)
class Policy:
    """A trained policy: observation history to action mean."""

    config: TrainConfig
    """How it was trained."""
    step: int
    """Policy updates it has had."""
    actor: Any
    """The rsl_rl model with its trained weights, in evaluation mode."""
    module: nn.Module
    """Normaliser, encoder and MLP as one module: (N, observations) -> (N, actions)."""

    @torch.inference_mode()
    def __call__(self, observations: Tensor) -> Tensor:
        """Return the mean action."""
        return self.module(observations)


def load_policy(path: str | Path, step: int | None = None) -> Policy:
    """Load a policy from a run folder.

    Args:
        path: The run folder, or the name of a shipped policy.
        step: Which checkpoint; the newest by default.
    """
    run = Run.open(path)
    if run.config.get("kind") == "manipulation":
        raise RunError(
            f"{run.path} learned manipulation from demonstrations, and this is for policies that "
            "walk. Such a policy has prism eval (--videos for films), contact, probe and report."
        )
    config = from_dict(TrainConfig, run.config, where=f"{run.path / 'config.json'}")
    checkpoint = run.load(step)
    actor = make_actor(config)
    weights = {
        name.removeprefix("actor."): tensor
        for name, tensor in checkpoint.tensors.items()
        if name.startswith("actor.")
    }
    try:
        actor.load_state_dict(weights)
    except RuntimeError as error:
        raise RunError(
            f"The checkpoint {checkpoint.step} of {run.path} does not fit the actor that its "
            f"config.json describes: {error}"
        ) from error
    actor.eval()
    return Policy(config, checkpoint.step, actor, actor.as_onnx(verbose=False).eval())
