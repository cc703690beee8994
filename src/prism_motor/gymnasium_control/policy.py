"""Trained policies: what acts, without Stable-Baselines3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from prism_motor.nn import Actor, ActorConfig, build_actor
from prism_motor.runs.checkpoints import select
from prism_motor.train.loading import open_trained

if TYPE_CHECKING:
    from prism_motor.gymnasium_control.config import ControlConfig

_CLIP, _EPSILON = 10.0, 1e-8
"""Largest normalised observation, and what keeps variances from zero, as in VecNormalize."""


def actor_outputs(algorithm: str, actions: int) -> int:
    """Return the outputs of an actor as it is trained: that of SAC has a head for deviations."""
    return 2 * actions if algorithm == "sac" else actions


def make_policy(config: ControlConfig) -> ControlPolicy:
    """Make the policy of a prepared run, with weights that are still to be loaded."""
    task, squashes = config.task, config.algorithm == "sac"
    return ControlPolicy(config.actor, task.observations, task.actions, squashes)


class ControlPolicy(nn.Module):
    """What a trained policy does without noise: observations (N, O) to actions (N, A).

    Observations are normalised in doubles, as Stable-Baselines3 does: so actions are equal to those
    of its ``predict``.

    Args:
        actor: The network.
        observations: Numbers that the environment shows.
        actions: Numbers that it takes.
        squashes: Whether a hyperbolic tangent bounds the actions (SAC); else they are cut (PPO).
    """

    mean: Tensor
    variance: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, actor: ActorConfig, observations: int, actions: int, squashes: bool) -> None:
        super().__init__()
        self.in_features, self.squashes = observations, squashes
        self.config: ControlConfig | None = None
        self.step = 0
        self.actor: Actor = build_actor(actor, observations, actions)
        self.register_buffer("mean", torch.zeros(observations, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(observations, dtype=torch.float64))
        self.register_buffer("low", torch.full((actions,), -1.0))
        self.register_buffer("high", torch.full((actions,), 1.0))

    def forward(self, observations: Tensor) -> Tensor:
        """Return the action of each observation."""
        if self.squashes:
            share = 0.5 * (torch.tanh(self.actor(observations.float())) + 1.0)
            return self.low + share * (self.high - self.low)
        scale = torch.sqrt(self.variance + _EPSILON)
        seen = ((observations.double() - self.mean) / scale).clamp(-_CLIP, _CLIP).float()
        return torch.clamp(self.actor(seen), self.low, self.high)


def load_policy(path: str | Path, step: int | None = None) -> ControlPolicy:
    """Load a policy from a run folder.

    Args:
        path: The run folder.
        step: Which checkpoint; the newest by default.
    """
    run = open_trained(path, "gymnasium", step)
    policy = make_policy(run.config)
    with run.loading("actor"):
        policy.load_state_dict(select(run.checkpoint.tensors, "policy."))
    policy.config, policy.step = run.config, run.checkpoint.step
    return policy.eval()
