"""The best of several prompts for one reward, found by letting robots act for a few seconds.

The latent of a reward depends on the states it is made of, and some subsets of them make better
latents than all of them. So each of several is tried, in the simulation that the policy knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor._ranges import Checked, Seed, above, between
from prism_motor.tracking.env import TrackingEnv
from prism_motor.tracking.prompts.latents import combine_codes
from prism_motor.tracking.task import NOMINAL, StartConfig

if TYPE_CHECKING:
    from prism_motor.tracking.policy import TrackingPolicy
    from prism_motor.tracking.prompts.reward_names import Reward
    from prism_motor.tracking.prompts.states import PromptStates
    from prism_motor.tracking.references import References
    from prism_motor.tracking.task import TrackingTask

_ENDLESS = StartConfig(lying=0.0, duration=1000.0, after_fall=None)


@dataclass(frozen=True)
class SearchConfig(Checked, section="search"):
    """How the prompt of a reward is looked for."""

    candidates: Annotated[int, between(1, 1024)] = 8
    """Latents that are tried; the first is made of all states."""
    share: Annotated[float, above(0, 1)] = 0.25
    """Share of the states that each of the others is made of."""
    seconds: Annotated[float, above(0, 60)] = 3.0
    """How long each is tried, s."""
    temperature: Annotated[float, between(0, 1000)] | None = 10.0
    """States are weighted by softmax(temperature x reward); ``None``: all alike."""
    seed: Seed = 0
    """Seed of the subsets."""


@dataclass(frozen=True)
class FoundPrompt:
    """The latent that did best."""

    latent: Tensor
    """The latent (d,), on the CPU."""
    scores: tuple[float, ...]
    """Mean reward of all that were tried."""
    best: int
    """Which one it is."""
    reached: float
    """Largest reward among the states that latents were made of."""

    @property
    def score(self) -> float:
        """Mean reward of the best."""
        return self.scores[self.best]


def candidate_latents(
    policy: TrackingPolicy, states: PromptStates, rewards: np.ndarray, config: SearchConfig
) -> Tensor:
    """Return the latents to try (candidates, d), on the policy's device."""
    device = next(policy.parameters()).device
    codes = policy.encode(states.observations(policy.layout).to(device))
    weights = torch.from_numpy(rewards).to(codes)
    generator = torch.Generator().manual_seed(config.seed)
    size = max(1, round(config.share * len(weights)))
    latents = [combine_codes(codes, weights, config.temperature)]
    while len(latents) < config.candidates:
        chosen = torch.randperm(len(weights), generator=generator)[:size].to(device)
        try:
            latents.append(combine_codes(codes[chosen], weights[chosen], config.temperature))
        except InputError:  # none of these states has any reward
            latents.append(latents[0])
    return torch.stack(latents)


@torch.inference_mode()
def try_latents(
    policy: TrackingPolicy,
    task: TrackingTask,
    references: References,
    reward: Reward,
    latents: Tensor,
    *,
    start: int,
    seconds: float,
) -> list[float]:
    """Return the mean reward of robots (N) that act under a latent each, undisturbed.

    Args:
        policy: The policy.
        task: Its task.
        references: The clips.
        reward: What counts.
        latents: Latents (N, d).
        start: Frame of all clips in which all robots begin.
        seconds: How long they act.
    """
    calm = replace(task, starts=_ENDLESS, randomisation=NOMINAL)
    env = TrackingEnv(calm, references, len(latents), seed=0)
    env.begin_at(torch.full((len(latents),), start))
    steps = max(1, round(seconds / task.control_dt))
    total = np.zeros(len(latents))
    for _ in range(steps):
        step = env.step(policy(env.observations.to(latents.device), latents).cpu())
        found = reward(step.qpos, step.qvel)
        total += np.where(np.isfinite(found), found, 0.0)
    return [float(one) for one in total / steps]


def search_reward(
    policy: TrackingPolicy,
    task: TrackingTask,
    references: References,
    states: PromptStates,
    reward: Reward,
    *,
    start: int,
    config: SearchConfig | None = None,
) -> FoundPrompt:
    """Return the best of several latents for a reward.

    Args:
        policy: The policy.
        task: Its task.
        references: The clips.
        states: What latents are made of.
        reward: What is to be maximised.
        start: Frame of all clips in which robots begin.
        config: How many are tried, and how.
    """
    config = config or SearchConfig()
    rewards = reward(states.qpos, states.qvel)
    if not rewards.max() > 1e-12:
        raise InputError(
            f"Reward {reward.name}: none of the {states.source} has any of it, so it prompts "
            "nothing. Choose one that this policy has come across in training."
        )
    latents = candidate_latents(policy, states, rewards, config)
    scores = try_latents(
        policy, task, references, reward, latents, start=start, seconds=config.seconds
    )
    best = int(np.argmax(scores))
    return FoundPrompt(latents[best].cpu(), tuple(scores), best, float(rewards.max()))
