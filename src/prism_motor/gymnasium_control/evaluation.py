"""Episodes of a trained policy, each from a start of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from prism_motor.gymnasium_control.environments import make_env
from prism_motor.gymnasium_control.policy import ControlPolicy


@dataclass(frozen=True)
class ControlEpisode:
    """What happened in an episode."""

    KEY: ClassVar = ("number",)

    number: int
    """Its number within the evaluation seed."""
    reset_seed: int
    """Gymnasium's seed that it started from."""
    completed: bool
    """Whether it lasted until the time limit, instead of ending in a fall."""
    episode_return: float
    """Sum of the environment's rewards, neither discounted nor normalised."""
    steps: int
    """Steps until it ended."""
    forward_speed: float | None
    """Mean forward velocity, m/s; unknown where the environment does not tell positions."""


def start_seed(seed: int, number: int) -> int:
    """Return the seed from which an episode of an evaluation starts."""
    return 1000 * seed + number


def run_episode(policy: ControlPolicy, name: str, seed: int, number: int) -> ControlEpisode:
    """Run one episode without noise.

    Args:
        policy: The policy.
        name: Id of the environment.
        seed: Evaluation seed.
        number: Number of the episode.
    """
    # The policy is small, and one thread keeps its rounding the same everywhere.
    torch.set_num_threads(1)
    env = make_env(name)
    device = policy.low.device
    try:
        first = start_seed(seed, number)
        observation, info = env.reset(seed=first)
        began = info.get("x_position")
        total, steps, terminated, truncated = 0.0, 0, False, False
        while not (terminated or truncated):
            with torch.inference_mode():
                seen = torch.from_numpy(observation)[None].to(device)
                action = policy(seen)[0].cpu().numpy()
            observation, reward, terminated, truncated, info = env.step(action)
            total += float(reward)
            steps += 1
        speed = None
        if began is not None and "x_position" in info:
            speed = float(info["x_position"] - began) / (steps * env.unwrapped.dt)
        return ControlEpisode(number, first, not terminated, total, steps, speed)
    finally:
        env.close()
