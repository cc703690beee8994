"""Prompts: latents that make the policy track a motion, reach a pose or maximise a reward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.tracking.learning.latents import following_latents, project
from prism_motor.tracking.observations import RobotFrames, at_rest, clip_observations

if TYPE_CHECKING:
    from prism_motor.tracking.policy import TrackingPolicy


def tracking_prompt(policy: TrackingPolicy, observations: Tensor, window: int = 1) -> Tensor:
    """Return one latent per step (T - 1, d) that tracks a clip.

    Args:
        policy: The policy.
        observations: Observations of the clip's frames (T, size).
        window: Coming frames that a latent averages; 1: the next frame alone.
    """
    if len(observations) < 2:
        raise InputError(f"Tracking needs at least two frames, got {len(observations)}.")
    return following_latents(policy.encode(observations[1:]), window)


def goal_prompt(policy: TrackingPolicy, frames: RobotFrames) -> Tensor:
    """Return the latents (N, d) that hold the poses of some frames."""
    layout = policy.layout
    return policy.encode(clip_observations(at_rest(frames), layout))


def reward_prompt(
    policy: TrackingPolicy, observations: Tensor, rewards: Tensor, temperature: float | None = 10.0
) -> Tensor:
    """Return the latent (d,) that maximises a reward.

    Args:
        policy: The policy.
        observations: States that were reached (N, size), e.g. successors from the replay buffer.
        rewards: The reward of each (N,).
        temperature: Weights the states by softmax(temperature * reward); ``None``: all alike, for
            which the prompt is exact if the states are drawn as in training.
    """
    if len(rewards) != len(observations):
        raise InputError(f"{len(observations)} states need as many rewards, got {len(rewards)}.")
    return combine_codes(policy.encode(observations), rewards, temperature)


def combine_codes(codes: Tensor, rewards: Tensor, temperature: float | None) -> Tensor:
    """Return the projected sum of codes (N, d) times rewards (N,), weighted or plain."""
    total = state_weights(rewards, temperature).to(codes) @ codes
    if not total.norm() > 1e-12:
        raise InputError(
            "The reward is zero on all given states, so it prompts nothing. Give more states, or a "
            "reward that some of them have."
        )
    return project(total)


def state_weights(rewards: Tensor, temperature: float | None) -> Tensor:
    """Return what states of some rewards (N,) count: the reward, times softmax if weighted."""
    return rewards if temperature is None else torch.softmax(temperature * rewards, 0) * rewards
