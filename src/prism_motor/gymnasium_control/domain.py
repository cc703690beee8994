"""Gymnasium's MuJoCo environments as a domain: what the rest of the package asks about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from prism_motor.domains import Domain
from prism_motor.gymnasium_control.config import ControlConfig, ControlEvaluation, SACSettings
from prism_motor.gymnasium_control.environments import env_facts
from prism_motor.gymnasium_control.evaluation import ControlEpisode, run_episode
from prism_motor.gymnasium_control.presets import ARMS, LEADING, PRESETS, make_config
from prism_motor.gymnasium_control.reporting import MEASURES, ControlReport
from prism_motor.protocols import Key, Stretch, Trainer

if TYPE_CHECKING:
    from prism_motor.gymnasium_control.policy import ControlPolicy
    from prism_motor.train.distributed import Rank

_EPISODE_STEPS = 1000
"""Longest episode of Gymnasium's MuJoCo environments that walk."""
_EVALUATION_COST = 0.5
"""Cost of an evaluation's step, relative to one of training without learning."""
_MEASURED_STEPS = 100
"""Steps by which the speed of an off-policy run is measured."""


class GymnasiumDomain(Domain):
    """HalfCheetah, Hopper, Walker2d, Ant and Humanoid, learned by Stable-Baselines3."""

    name = "gymnasium"
    title = "Gymnasium"
    config = ControlConfig
    evaluation = ControlEvaluation
    episode = ControlEpisode
    measures = MEASURES
    weights = "policy."
    tuning_metric = ("episode_return", True)
    presets = PRESETS
    arms = ARMS
    configure = staticmethod(make_config)  # type: ignore[assignment]
    default_preset = "laptop"
    leading = LEADING
    short_flags: ClassVar[Mapping[str, str]] = {
        "--env": "--task.env",
        "--degree": "--actor.degree",
    }

    @cached_property
    def reporting(self) -> ControlReport:
        """What reports need to know."""
        return ControlReport(self)

    def flags(
        self, preset: str, arm: str, leading: Mapping[str, str] | None = None
    ) -> ControlConfig:
        """Return the settings whose fields are flags; for a control, those of the matched arm."""
        return make_config(preset, self.arm_name(arm), overrides=leading, match=False)

    def prepare(self, config: ControlConfig) -> ControlConfig:
        """Fill in the sizes of the environment, after checking that it can be made."""
        facts = env_facts(config.task.env)
        sizes = {"observations": facts.observations, "actions": facts.actions}
        return replace(config, task=replace(config.task, **sizes))

    def planned(self, config: ControlConfig) -> ControlConfig:
        """Return the settings without the sizes of the environment."""
        return replace(config, task=replace(config.task, observations=0, actions=0))

    def guess_evaluation(
        self, config: ControlConfig, evaluation: ControlEvaluation, update: float
    ) -> float:
        """Estimate from the longest episodes there can be."""
        steps = evaluation.episodes * _EPISODE_STEPS
        return _EVALUATION_COST * steps * update / config.samples_per_update

    def run_name(self, config: ControlConfig) -> str:
        """Return ENV-ALGORITHM-PRESET-ARM-SEED."""
        env = config.task.env.replace("/", "-").replace(":", "-")
        return f"{env}-{config.algorithm}-{config.preset}-{config.arm}-{config.seed}"

    def task_name(self, config: ControlConfig) -> str:
        """Name environment and algorithm."""
        return f"{config.task.env}, {config.algorithm.upper()}"

    def summary(self, trainer: Trainer) -> str:
        """Describe what is trained and its size."""
        config: ControlConfig = trainer.config
        size = self.reporting.parameters(config)
        told = (
            f"{config.arm} on {self.task_name(config)}, preset {config.preset}, actor of {size:,}"
        )
        memory = self.reserved(trainer.config, trainer)
        room = f", replay buffer up to {memory / 1e6:,.0f} MB" if memory else ""
        return f"{told} parameters{room}"

    def trainer(self, config: ControlConfig, rank: Rank) -> Trainer:
        """Make the trainer."""
        from prism_motor.gymnasium_control.trainer import ControlTrainer

        return ControlTrainer(self.prepare(self.share(config, rank.world_size)))

    def size(self, config: ControlConfig) -> tuple[int, int]:
        """Return steps of all environments and of their physics."""
        samples = config.updates * config.samples_per_update
        return samples, samples * env_facts(config.task.env).substeps

    def stretches(self, config: ControlConfig) -> list[Stretch]:
        """Measure SAC by fewer steps, with and without learning."""
        learner = config.learner
        if not isinstance(learner, SACSettings):
            return [Stretch(config, config.updates)]
        random = min(config.updates, learner.learning_starts // config.samples_per_update)
        steps = min(learner.steps, _MEASURED_STEPS)
        short = replace(config, learner=replace(learner, steps=steps, learning_starts=0))
        scale = learner.steps / steps
        parts = [Stretch(config, random)] if random else []
        return [*parts, Stretch(short, max(0, config.updates - random), scale)]

    def reserved(self, config: ControlConfig, trainer: Trainer) -> int:
        """Return the size of the replay buffer, which fills in the course of training."""
        replay = trainer.replay  # type: ignore[attr-defined]
        return 0 if replay is None else replay.bytes

    def load_policy(self, run: str | Path, step: int | None = None) -> ControlPolicy:
        """Load a policy."""
        from prism_motor.gymnasium_control.policy import load_policy

        return load_policy(run, step)

    def run_episode(
        self, policy: ControlPolicy, condition: str, seed: int, key: Key
    ) -> ControlEpisode:
        """Run one episode."""
        assert policy.config is not None
        return run_episode(policy, policy.config.task.env, seed, *key)


GYMNASIUM = GymnasiumDomain()
"""The domain."""
