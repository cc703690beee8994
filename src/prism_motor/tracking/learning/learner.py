"""One update of forward-backward representations regularised by expert motions (FB-CPR).

The order of an update: statistics, expert latents, discriminator, new latents, then forward map,
backward map and critics, actor, targets. Forward map and critics do not depend on each other, so
one pass and one step serve them all. Nothing is terminal: falls and time-outs keep the discount.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prism_motor._devices import autocast
from prism_motor.tracking.learning import losses
from prism_motor.tracking.learning.latents import (
    following_latents,
    mix_latents,
    relabel,
    window_latents,
)
from prism_motor.tracking.learning.networks import GOAL_STREAMS, frozen
from prism_motor.tracking.learning.parts import LearnerParts, Row

if TYPE_CHECKING:
    from prism_motor.tracking.learning.experts import ExpertBatch, ExpertClips
    from prism_motor.tracking.learning.replay import ReplayBuffer

_EDGE = 1 - 1e-6
"""Largest absolute action in updates."""


class TrackingLearner(LearnerParts):
    """One call is one update; see :class:`LearnerParts` for its arguments and attributes."""

    # --- acting ---

    @torch.no_grad()
    def explore(self, observations: Tensor, latents: Tensor, steps: int) -> Tensor:
        """Return actions for a rollout: uniform during the warm-up, else the actor's with noise.

        Args:
            observations: Raw observations (N, size).
            latents: Latents (N, d).
            steps: Environment steps taken so far.
        """
        config = self.settings.learner
        if steps < config.warmup_steps:
            shape = (len(observations), self.layout.actions)
            return 2 * torch.rand(shape, generator=self.generator, device=self._device) - 1
        mean = self.policy(observations.to(self._device), latents)
        return (mean + config.action_std * self._normal(mean)).clamp(-1, 1)

    @torch.no_grad()
    def stretches(self, experts: ExpertClips, count: int) -> Tensor | None:
        """Return the latents (count, steps, d) of stretches of clips that rollouts follow."""
        config = self.settings.latents
        frames = experts.stretches(count, config.follow_steps, self.generator)
        if frames is None:
            return None
        return following_latents(self.policy.encode(frames), config.window)

    # --- learning ---

    def learn(self, replay: ReplayBuffer, experts: ExpertClips) -> Row:
        """Draw a batch and do one update; return its measures."""
        batch = self.settings.learner.batch
        transitions = {k: v.to(self._device) for k, v in replay.sample(batch).items()}
        return self.update(transitions, experts.sample(batch, self.generator))

    def update(self, batch: Mapping[str, Tensor], experts: ExpertBatch) -> Row:
        """Do one update.

        Args:
            batch: Transitions: observation, action, latent, auxiliary, next_observation.
            experts: As many expert frames, in windows.
        """
        settings, policy, layout = self.settings, self.policy, self.layout
        row: Row = {}
        if share := settings.learner.statistics:
            policy.normaliser.observe(batch["observation"], share)
            policy.normaliser.observe(batch["next_observation"], share)
        with torch.no_grad():
            now = policy.normaliser(batch["observation"])
            following = policy.normaliser(batch["next_observation"])
            goals, next_goals = (layout.select(x, GOAL_STREAMS) for x in (now, following))
            expert, next_expert = (
                policy.normaliser(layout.select(x, GOAL_STREAMS), GOAL_STREAMS)
                for x in (experts.observation, experts.next_observation)
            )
            with self._cast():
                codes = policy.backward_map(next_expert).float()
            expert_latents = window_latents(codes, settings.latents.window)

        if self.steps % settings.discriminator.every == 0:
            self._step_discriminator(expert, expert_latents, goals, batch["latent"], row)

        # The backward map does not change until its own step, so its codes serve as goals, too.
        with self._cast(), torch.set_grad_enabled(settings.learner.backward_rate > 0):
            next_codes = policy.backward_map(next_goals).float()
        new, of_clips = mix_latents(
            settings.latents, next_codes.detach(), expert_latents, self.generator
        )
        self.ring.push(new)
        latents, renewed = relabel(settings.latents, new, batch["latent"], self.generator)

        transition = (now, latents, batch["action"])
        rewards = self._rewards(goals, latents, batch["auxiliary"], row)
        self._step_values(transition, (following, next_goals), next_codes, rewards, row)
        if self.steps >= settings.learner.actor_delay:
            # Rows under the latent that was acted under are those that followers of clips visit.
            self._step_actor(now, latents, of_clips | ~renewed, row)
        self._move_targets()
        self.steps += 1
        return row

    def _step_discriminator(
        self, expert: Tensor, expert_latents: Tensor, goals: Tensor, acted_under: Tensor, row: Row
    ) -> None:
        """Tell expert frames under their latents from the policy's under those it acted under."""
        real = torch.cat([expert_latents, expert], dim=1)
        fake = torch.cat([acted_under, goals], dim=1)
        share = torch.rand(len(real), 1, generator=self.generator, device=self._device)
        with self._cast():
            odds = self.discriminator.joint(torch.cat([real, fake])).float()
            penalty = losses.gradient_penalty(self.discriminator.joint, real, fake, share)
        real_odds, fake_odds = odds.chunk(2)
        entropy = losses.discriminator_loss(real_odds, fake_odds)
        loss = entropy + self.settings.discriminator.gradient_penalty * penalty
        self._descend("discriminator", {"discriminator": loss}, row)
        row["discriminator/entropy"] = entropy.detach()
        row["discriminator/penalty"] = penalty.detach()
        row["discriminator/expert"] = real_odds.detach().mean()
        row["discriminator/policy"] = fake_odds.detach().mean()

    @torch.no_grad()
    def _rewards(
        self, goals: Tensor, latents: Tensor, terms: Tensor, row: Row
    ) -> list[tuple[Tensor, float | None]]:
        """Return the reward (N,) of each critic, and how large its targets may be."""
        config = self.settings.discriminator
        with self._cast():
            odds = self.discriminator(latents, goals).float()
        reward = losses.discriminator_reward(odds, config.reward, config.reward_bound)
        bound = config.reward_bound
        row["imitation/reward"] = reward.mean()
        if config.normalise_reward:
            reward = self._imitation_scale(reward)
            bound /= self._imitation_scale.deviation
        largest = bound / (1 - self.settings.learner.gamma) if config.bounded_targets else None
        rewards: list[tuple[Tensor, float | None]] = [(reward, largest)]
        if "auxiliary" in self._critics:
            raw = terms @ self._auxiliary_weights
            row["auxiliary/reward"] = raw.mean()
            rewards.append((self._auxiliary_scale(raw), None))
        return rewards

    def _step_values(
        self,
        transition: tuple[Tensor, Tensor, Tensor],
        ahead: tuple[Tensor, Tensor],
        codes: Tensor,
        rewards: list[tuple[Tensor, float | None]],
        row: Row,
    ) -> None:
        """Fit forward map, backward map and critics to one step ahead.

        Args:
            transition: Observations, latents and actions.
            ahead: Successors, and their goal streams.
            codes: Backward map of the successors.
            rewards: Reward of each critic, and its largest target.
            row: Takes the measures.
        """
        config = self.settings.learner
        following, next_goals = ahead
        latents = transition[1]
        with torch.no_grad(), self._cast():
            action = self._noisy(self.policy.actor(following, latents).float())
            next_forward, *next_values = self._target_values(following, latents, action)
            next_codes = self._target_map(next_goals).float()
        # The mean over the members is linear: one product instead of two.
        measure = next_forward.float().mean(dim=0) @ next_codes.T
        with self._cast():
            forward, *values = self.values(*transition)
        parts = {
            "forward_backward": losses.forward_backward_loss(
                forward.float(), codes, measure, config.gamma
            )
        }
        if codes.requires_grad:
            orthonormality = losses.orthonormality_loss(codes)
            parts["orthonormality"] = config.orthonormality * orthonormality
        for name, value, later, (reward, largest) in zip(
            self._critics, values, next_values, rewards, strict=True
        ):
            later = losses.pessimistic(later.float().squeeze(-1), config.pessimism)
            target = reward + config.gamma * later
            if largest is not None:
                target = target.clamp(-largest, largest)
            value = value.float().squeeze(-1)
            parts[name] = losses.critic_loss(value, target)
            row[f"{name}/value"] = value.detach().mean()
        self._descend("values", parts, row)

    def _step_actor(self, now: Tensor, latents: Tensor, held: Tensor, row: Row) -> None:
        """Improve the actor; only its own gradients are computed, those of the values are not.

        Args:
            now: Normalised observations.
            latents: What to act under.
            held: In which rows the anchor holds the actor (N,).
            row: Takes the measures.
        """
        config = self.settings.learner
        with self._cast(), frozen(self.values):
            mean = self.policy.actor(now, latents).float()
            action = self._noisy(mean)
            forward, *values = self.values(now, latents, action)
        value = losses.pessimistic((forward.float() * latents).sum(-1), config.pessimism)
        row["actor/value"] = value.detach().mean()
        others = []
        for name, critic in zip(self._critics, values, strict=True):
            other = losses.pessimistic(critic.float().squeeze(-1), config.pessimism)
            others.append((getattr(config, f"{name}_weight"), other))
            row[f"actor/{name}"] = other.detach().mean()
        weight = self.settings.anchor.weight_at(self.steps)
        if weight and self._anchor is not None:
            with torch.no_grad(), self._cast():
                wanted = self._anchor(now, latents).float()
            error = losses.anchor_loss(mean, wanted, held)
            others.append((weight, -error))
            row["actor/anchor"] = error.detach()
        self._descend("actor", {"actor": losses.actor_loss(value, *others)}, row)

    def _noisy(self, mean: Tensor) -> Tensor:
        """Add clipped noise; where the sum is clipped the gradient passes as if it were not."""
        config = self.settings.learner
        clip = config.action_noise_clip
        action = mean + (config.action_std * self._normal(mean)).clamp(-clip, clip)
        return action + (action.clamp(-_EDGE, _EDGE) - action).detach()

    def _normal(self, like: Tensor) -> Tensor:
        return torch.randn(like.shape, generator=self.generator, device=like.device)

    def _cast(self) -> AbstractContextManager[Any]:
        """Compute the networks in the precision that is asked for; losses are float32.

        Used anew for each step: within one context torch keeps converted copies of the weights,
        which a step would leave behind.
        """
        return autocast(self._device, self._precision)
