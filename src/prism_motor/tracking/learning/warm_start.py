"""A warm start for the actor: follow the clips under the latents that prompt them, by PPO.

Forward-backward learning needs far more updates than a laptop has before a whole humanoid keeps its
balance. PPO with a tracking reward gets there in a few million samples, on the very actor that is
trained afterwards: it acts on the same observations, under latents of clips and of poses at rest.
The backward map that makes these latents is only spread over its sphere before; it hardly moves
afterwards. rsl_rl's PPO does the learning.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor._extras import missing_extra
from prism_motor.runs.checkpoints import select
from prism_motor.tracking.learning import losses
from prism_motor.tracking.learning.following_reward import TrackingReward
from prism_motor.tracking.learning.latents import following_latents
from prism_motor.tracking.learning.networks import ACTOR_STREAMS, GOAL_STREAMS
from prism_motor.train.finite import (
    check,
    check_numbers,
    check_observations,
    check_rewards,
    check_weights,
)
from prism_motor.train.optimizers import pack_optimizer, unpack_optimizer

if TYPE_CHECKING:
    from prism_motor.tracking.config import TrackingConfig
    from prism_motor.tracking.env import TrackingEnv, TrackingStep
    from prism_motor.tracking.learning.experts import ExpertClips
    from prism_motor.tracking.learning.learner import TrackingLearner
    from prism_motor.tracking.learning.networks import TrackingActor
    from prism_motor.tracking.references import References

try:
    from rsl_rl.algorithms import PPO
    from rsl_rl.models import MLPModel
    from rsl_rl.storage import RolloutStorage
    from tensordict import TensorDict
except ImportError as error:
    raise missing_extra("The warm start of tracking", "locomotion", error) from error

_CLONING_RATE, _CLONING_NOISE, _TUMBLING_NOISE = 1e-3, 0.3, 0.1
"""Learning rate, noise on normalised observations, and on actions, of what comes before PPO."""
_MISSED_SHARE, _LOSS = 0.05, 25.0
"""Share of an update in what is missed of clips; steps without reward that a lost clip counts."""
_LOWEST_STD, _HIGHEST_STD = 0.02, 0.3
"""Limits of the initial exploration, in units of the action."""


class WarmStart:
    """PPO on the learner's actor.

    Args:
        config: The run.
        learner: Its policy is trained in place.
        env: The robots; their episodes follow the clips that they begin in.
        references: The clips.
        experts: The same as the learner sees them.
    """

    def __init__(
        self,
        config: TrackingConfig,
        learner: TrackingLearner,
        env: TrackingEnv,
        references: References,
        experts: ExpertClips,
    ) -> None:
        self._config, self._learner, self._env = config.warm_start, learner, env
        self._precision, self._device = config.precision, config.device
        self._ahead = config.task.ahead
        self._reward = TrackingReward(references, env.layout)
        # Frames are numbered through all clips, and then once more at rest: those are held. Which
        # one follows each, and which is the last of its clip:
        total, ends = len(references.qpos), references.starts[1:] - 1
        self._total, self._starts = total, references.starts.tolist()
        last = np.repeat(ends, references.lengths)
        following = np.minimum(np.arange(total) + 1, last)
        held = np.arange(total, 2 * total)
        self._next = torch.from_numpy(np.concatenate([following, held]))
        self._is_last = torch.from_numpy(np.concatenate([np.arange(total) == last, held < 0]))
        units = torch.tensor(config.task.units)
        still = references.still(env.layout).to(experts.observations)
        self._goals = torch.cat([experts.observations, still])
        self._aims = torch.cat([references.aims(units)[self._next[:total]], references.aims(units)])
        self._last_of = torch.from_numpy(last)
        self._at = env.frame.clone()
        self._clip_of = torch.from_numpy(np.repeat(np.arange(len(ends)), references.lengths))
        # What is missed of each clip: those that are hard to follow are begun more often.
        self._missed = torch.ones(len(ends), dtype=torch.float64)
        self._prepared = False
        self._latents = torch.zeros(2 * total, config.networks.latent)
        self._ppo = self._make_ppo(units)

    def update(self, timer: Any, remember: Any) -> dict[str, float]:
        """Collect samples, learn from them, and return the metrics.

        Args:
            timer: Context manager by name, which measures time.
            remember: Called with the fields of every row of the replay buffer.
        """
        if not self._prepared:
            self.prepare()
        sums: dict[str, float] = defaultdict(float)
        visited: list[Tensor] = []
        missed, steps = (torch.zeros_like(self._missed) for _ in range(2))
        self._latents = self._prompts()
        with torch.no_grad():
            seen = self._seen()
            for _ in range(self._config.steps):
                visited.append(self._env.observations)
                clips = self._clip_of[self._at % self._total]
                seen, missing = self._step(seen, sums, timer, remember)
                missed.index_add_(0, clips, missing)
                steps.index_add_(0, clips, torch.ones_like(missing))
            self._ppo.compute_returns(seen)
        check("the return of the warm start", self._ppo.storage.returns)
        with timer("update"):
            found = self._ppo.update()
            # Clips that are followed call for precision; those that are not, for exploration.
            self._actor.std.data.clamp_(min=self._least_std)
        found.pop("symmetry", None)
        check_numbers("loss", found)
        check_weights(self.models())
        self._prioritise(missed, steps)
        # The statistics follow slowly, so that the learner finds those of its replay buffer.
        self._learner.policy.normaliser.observe(torch.cat(visited).to(self._device))
        count = self._config.steps * self._env.envs
        return {
            "tracking_reward": sums["reward"] / count,
            "upright": sums["upright"] / count,
            "seconds_between_losses": count * self._env.task.control_dt / max(1.0, sums["lost"]),
            "action_std": self._ppo.actor.output_std.mean().item(),
            "learning_rate": self._ppo.learning_rate,
            **{f"loss/warm_start_{name}": value for name, value in found.items()},
        }

    def models(self) -> dict[str, nn.Module]:
        """Return the networks that only the warm start has."""
        return {"warm_start_critic": self._ppo.critic}

    # --- before PPO ---

    def prepare(self) -> None:
        """Set the statistics, spread the backward map, and imitate drives that aim ahead."""
        policy, generator = self._learner.policy, self._learner.generator
        seen, wanted = self._goals, self._aims.to(self._device)
        # Latents must tell apart what robots do, not only what clips show.
        known = torch.cat([seen[: self._total], self._tumble().to(seen)])
        policy.normaliser.start_from(known)
        goals = policy.layout.select(policy.normaliser(known), GOAL_STREAMS)
        optimizer = torch.optim.Adam(policy.backward_map.parameters(), _CLONING_RATE)
        batch = min(256, len(goals))
        for _ in range(self._config.spreading_steps):
            chosen = torch.randint(len(goals), (batch,), generator=generator, device=goals.device)
            loss = losses.orthonormality_loss(policy.backward_map(goals[chosen]))
            _descend(optimizer, loss)
        latents = self._prompts().to(self._device)
        optimizer = torch.optim.Adam(policy.actor.parameters(), _CLONING_RATE)
        for _ in range(self._config.cloning_steps):
            chosen = torch.randint(len(seen), (batch,), generator=generator, device=seen.device)
            inputs = policy.normaliser(seen[chosen])
            noise = torch.randn(inputs.shape, generator=generator, device=inputs.device)
            actions = policy.actor(inputs + _CLONING_NOISE * noise, latents[chosen])
            _descend(optimizer, (actions - wanted[chosen]).square().sum(dim=-1).mean())
        self._learner.copy_to_targets()
        self._prepared = True

    def _tumble(self) -> Tensor:
        """Return what robots go through whose drives aim ahead in their clips, until they fall."""
        env, generator = self._env, self._learner.generator
        visited = []
        for _ in range(self._config.tumbling_steps):
            frames = torch.minimum(env.frame + env.clocks, self._last_of[env.frame])
            noise = torch.randn(env.applied.shape, generator=generator, device=generator.device)
            env.step(self._aims[frames] + _TUMBLING_NOISE * noise.cpu())
            visited.append(env.observations)
        env.begin_anew()
        self._begin(torch.arange(env.envs))
        return torch.cat(visited) if visited else env.observations[:0]

    @torch.no_grad()
    def _prompts(self) -> Tensor:
        """Return the latent of every frame: what comes after it in its clip, or it at rest."""
        policy = self._learner.policy
        parts = []
        for first, end in pairwise(self._starts):
            latents = following_latents(policy.encode(self._goals[first + 1 : end]), self._ahead)
            parts.append(torch.cat([latents, latents[-1:]]))
        return torch.cat([*parts, policy.encode(self._goals[self._total :])]).cpu()

    # --- PPO ---

    def _make_ppo(self, units: Tensor) -> PPO:
        config, env = self._config, self._env
        observations = self._seen()
        groups = {"actor": ["policy"], "critic": ["critic"]}
        self._actor = actor = _FollowerModel(observations, groups, self._learner.policy.actor)
        std = (config.exploration / units).clamp(_LOWEST_STD, _HIGHEST_STD)
        actor.std.data.copy_(std)
        self._least_std = (config.least_exploration / units).clamp(max=std).to(actor.std)
        width = [config.critic_width] * 2
        critic = MLPModel(observations, groups, "critic", 1, width, "elu")
        return PPO(
            actor,
            critic,
            RolloutStorage("rl", env.envs, config.steps, observations, [len(units)], self._device),
            num_learning_epochs=config.epochs,
            num_mini_batches=config.minibatches,
            clip_param=config.clip,
            gamma=config.gamma,
            lam=config.gae_lambda,
            entropy_coef=0.0,
            learning_rate=config.learning_rate,
            desired_kl=config.desired_kl,
            use_clipped_value_loss=False,
            use_mixed_precision=self._precision == "bf16",
            device=self._device,
        )

    def _seen(self) -> TensorDict:
        """Return what the networks see: the actor its latent, the critic the frame to reach."""
        policy, device = self._learner.policy, self._device
        observations = self._env.observations.to(device)
        normal = policy.normaliser(observations)
        layout = policy.layout
        wanted = layout.select(self._goals[self._next[self._at].to(device)], GOAL_STREAMS)
        parts = [
            layout.select(normal, ("state", "last_action")),
            normal[:, layout.columns["privileged"]],
            policy.normaliser(wanted, GOAL_STREAMS),
        ]
        acting = [layout.select(normal, ACTOR_STREAMS), self._latents[self._at].to(device)]
        groups = {"policy": torch.cat(acting, dim=1), "critic": torch.cat(parts, dim=1)}
        return TensorDict(groups, batch_size=[len(normal)], device=device)

    def _prioritise(self, missed: Tensor, steps: Tensor) -> None:
        """Begin half of all episodes in any clip, the others by what is missed of each per step."""
        rate = missed / steps.clamp(min=1)
        self._missed.lerp_(torch.where(steps > 0, rate, self._missed), _MISSED_SHARE)
        shares = self._missed / self._missed.sum().clamp(min=1e-12)
        self._env.priorities = 0.5 / len(shares) + 0.5 * shares

    def _step(
        self, seen: TensorDict, sums: dict[str, float], timer: Any, remember: Any
    ) -> tuple[TensorDict, Tensor]:
        """Let all robots act once; return what they see then, and what each missed of its clip."""
        env = self._env
        before, latents = env.observations, self._latents[self._at]
        physics = np.concatenate([env.engine.qpos, env.engine.qvel], axis=1)
        with timer("policy"):
            actions = self._ppo.act(seen).cpu()
        check("the action", actions)
        following = self._next[self._at]
        found: dict[str, Tensor] = {}

        def judge(step: TrackingStep) -> Tensor:
            found["reward"], found["lost"] = self._reward(step, following)
            return found["lost"] | self._is_last[following]

        with timer("environment"):
            step = env.step(actions, judge)
        check_observations([("policy", env.observations)])
        check_rewards(found["reward"])
        lost = found["lost"]
        self._at = following
        self._begin(step.ends.nonzero()[:, 0])
        remember(
            observation=before, action=env.applied, latent=latents, auxiliary=step.terms,
            physics=torch.from_numpy(physics), ends=step.ends,
        )  # fmt: skip
        following_seen = self._seen()
        ends, late = step.ends.to(self._device), (step.ends & ~lost).to(self._device)
        self._ppo.process_env_step(
            following_seen, found["reward"].to(self._device), ends, {"time_outs": late.float()}
        )
        sums["reward"] += found["reward"].sum().item()
        sums["lost"] += lost.sum().item()
        sums["upright"] += step.upright.sum().item()
        missing = (1 - found["reward"]).double() + _LOSS * lost.double()
        return following_seen, missing

    def _begin(self, envs: Tensor) -> None:
        """Let some robots follow their clip from the frame they begin in, or hold that frame."""
        generator = self._learner.generator
        draw = torch.rand(len(envs), generator=generator, device=generator.device).cpu()
        self._at[envs] = self._env.frame[envs] + self._total * (draw < self._config.hold)

    # --- saving ---

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return (tensors, plain data) from which :meth:`restore` continues, without the actor."""
        optimizer, groups = pack_optimizer(self._ppo.optimizer)
        tensors = {f"critic.{k}": v for k, v in self._ppo.critic.state_dict().items()} | optimizer
        tensors |= {"std": self._actor.std, "at": self._at, "missed": self._missed}
        plain = {
            "param_groups": groups,
            "learning_rate": self._ppo.learning_rate,
            "prepared": self._prepared,
        }
        return tensors, plain

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self._ppo.critic.load_state_dict(select(tensors, "critic."))
        self._actor.std.data.copy_(tensors["std"])
        self._at, self._missed = tensors["at"].clone(), tensors["missed"].clone()
        unpack_optimizer(self._ppo.optimizer, tensors, plain["param_groups"])
        self._ppo.learning_rate = plain["learning_rate"]
        self._prepared = plain["prepared"]


class _FollowerModel(MLPModel):
    """rsl_rl's view of the tracking actor: normalised observations and a latent, side by side."""

    def __init__(
        self, observations: TensorDict, groups: dict[str, list[str]], actor: TrackingActor
    ) -> None:
        gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0}
        super().__init__(observations, groups, "actor", actor.outputs, [1], "elu", False, gaussian)
        self.mlp = _Side(actor)

    @property
    def std(self) -> Tensor:
        """The standard deviation of every action, which is learned."""
        return self.distribution.std_param  # type: ignore[union-attr,return-value]


class _Side(nn.Module):
    """Calls an actor with its two arguments side by side."""

    def __init__(self, actor: TrackingActor) -> None:
        super().__init__()
        self.actor = actor

    def forward(self, inputs: Tensor) -> Tensor:
        size = self.actor.inputs.size
        return self.actor(inputs[:, :size], inputs[:, size:])


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    check("the loss of the warm start", loss)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
