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
from prism_motor.tracking.prompts.latents import combine_codes, state_weights
from prism_motor.tracking.prompts.states import PromptStates
from prism_motor.tracking.task import NOMINAL, StartConfig

if TYPE_CHECKING:
    from prism_motor.tracking.policy import TrackingPolicy
    from prism_motor.tracking.prompts.reward_names import Reward
    from prism_motor.tracking.references import References
    from prism_motor.tracking.task import TrackingTask

_ENDLESS = StartConfig(lying=0.0, duration=1000.0, after_fall=None)


@dataclass(frozen=True)
class SearchConfig(Checked, section="search"):
    """How the prompt of a reward is looked for."""

    candidates: Annotated[int, between(1, 1024)] = 8
    """Sums over states that are tried; the first is over all of them."""
    share: Annotated[float, above(0, 1)] = 0.25
    """Share of the states that each of the others is over."""
    poses: Annotated[int, between(0, 1024)] = 8
    """Known poses at rest that are tried besides, drawn by what they are worth."""
    seconds: Annotated[float, above(0, 60)] = 2.0
    """How long each is judged, s."""
    settling: Annotated[float, between(0, 60)] = 3.0
    """How long each acts before, s: getting there does not count."""
    temperature: Annotated[float, between(0, 1000)] | None = 10.0
    """States are weighted by softmax(temperature x reward); ``None``: all alike."""
    seed: Seed = 0
    """Seed of the subsets and poses."""


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


def sum_latents(
    policy: TrackingPolicy, states: PromptStates, reward: Reward, config: SearchConfig
) -> Tensor:
    """Return the latents of sums over states (candidates, d), on the policy's device."""
    device = next(policy.parameters()).device
    codes = policy.encode(states.observations(policy.layout).to(device))
    weights = torch.from_numpy(reward(states.qpos, states.qvel)).to(codes)
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


def pose_latents(
    policy: TrackingPolicy, poses: np.ndarray, reward: Reward, config: SearchConfig
) -> Tensor:
    """Return the latents of single poses at rest (up to poses, d), on the policy's device.

    A sum over many states may mean none of them; a pose that a policy knows, it can hold.
    """
    device = next(policy.parameters()).device
    rest = np.zeros((len(poses), poses.shape[1] - 1))
    weights = state_weights(torch.from_numpy(reward(poses, rest)), config.temperature)
    count = min(config.poses, int((weights > 0).sum()))
    if not count:
        return torch.empty(0, device=device)
    generator = torch.Generator().manual_seed(config.seed)
    chosen = torch.multinomial(weights, count, generator=generator).numpy()
    still = PromptStates(poses[chosen], rest[chosen], "poses at rest")
    return policy.encode(still.observations(policy.layout).to(device))


@torch.inference_mode()
def try_latents(
    policy: TrackingPolicy,
    task: TrackingTask,
    references: References,
    reward: Reward,
    latents: Tensor,
    *,
    start: int,
    config: SearchConfig,
) -> list[float]:
    """Return the mean reward of robots (N) that act under a latent each, undisturbed.

    Args:
        policy: The policy.
        task: Its task.
        references: The clips.
        reward: What counts.
        latents: Latents (N, d).
        start: Frame of all clips in which all robots begin.
        config: How long they act.
    """
    calm = replace(task, starts=_ENDLESS, randomisation=NOMINAL)
    env = TrackingEnv(calm, references, len(latents), seed=0)
    env.begin_at(torch.full((len(latents),), start))
    settling = round(config.settling / task.control_dt)
    steps = max(1, round(config.seconds / task.control_dt))
    total = np.zeros(len(latents))
    for count in range(settling + steps):
        step = env.step(policy(env.observations.to(latents.device), latents).cpu())
        if count < settling:
            continue
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
    poses: np.ndarray | None = None,
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
        poses: Poses (N, 36) that the policy was trained to hold, if any.
        config: How many are tried, and how.
    """
    config = config or SearchConfig()
    rewards = reward(states.qpos, states.qvel)
    if not rewards.max() > 1e-12:
        raise InputError(
            f"Reward {reward.name}: none of the {states.source} has any of it, so it prompts "
            "nothing. Choose one that this policy has come across in training."
        )
    latents = sum_latents(policy, states, reward, config)
    if poses is not None and len(poses):
        held = pose_latents(policy, poses, reward, config)
        latents = torch.cat([latents, held]) if len(held) else latents
    scores = try_latents(policy, task, references, reward, latents, start=start, config=config)
    best = int(np.argmax(scores))
    return FoundPrompt(latents[best].cpu(), tuple(scores), best, float(rewards.max()))
