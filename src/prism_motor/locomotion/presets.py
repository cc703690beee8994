"""Training presets and the arms of a comparison, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from prism_motor.locomotion.config import PPOConfig, TrainConfig
from prism_motor.locomotion.task import TaskConfig
from prism_motor.locomotion.tasks import TASKS
from prism_motor.nn import (
    ActorConfig,
    GatedActorConfig,
    ResidualActorConfig,
    build_actor,
    matched_mlp,
)
from prism_motor.nn.checks import check_choice
from prism_motor.runs.configs import ConfigError, apply_overrides, flatten

ARMS = ("mlp", "mlp-larger", "gated", "residual")
"""Arms by name; ``mlp-larger`` is the plain MLP with as many parameters as ``gated``."""


@dataclass(frozen=True)
class Preset:
    """What a preset fixes for every arm."""

    hidden: tuple[int, ...]
    """Hidden widths of the actor's trunk."""
    latent: int
    """Width of the interaction stage."""
    critic_hidden: tuple[int, ...]
    """Hidden widths of the critic."""
    envs: int
    """Environments."""
    iterations: int
    """Policy updates."""
    checkpoint_every: int
    """Iterations between checkpoints."""
    warmup: int
    """Policy updates over which the residual actor's polynomial fades in."""
    ppo: PPOConfig
    """The learner."""


_PAPER = Preset(
    hidden=(512, 256, 128),
    latent=256,
    critic_hidden=(768, 256, 128),
    envs=4096,
    iterations=3001,
    checkpoint_every=100,
    warmup=500,
    ppo=PPOConfig(),
)

_LAPTOP = Preset(
    hidden=(256, 128, 64),
    latent=96,
    critic_hidden=(256, 128, 64),
    envs=256,
    iterations=1000,
    checkpoint_every=25,
    warmup=150,
    ppo=PPOConfig(
        steps=16,
        epochs=3,
        learning_rate=1e-3,
        schedule="linear",
        final_learning_rate=1e-4,
        decay_samples=4.1e6,
        gamma=0.99,
        gae_lambda=0.95,
        clip_value_loss=False,
        entropy_weight=0.005,
        initial_std=0.5,
        normalise_observations=True,
        mirror=True,
    ),
)

PRESETS: dict[str, Preset] = {
    "paper": _PAPER,
    "g1": replace(
        _PAPER,
        envs=_LAPTOP.envs,
        iterations=800,
        checkpoint_every=_LAPTOP.checkpoint_every,
        warmup=_LAPTOP.warmup,
        # 705 inputs want a smaller rate than 235.
        ppo=replace(
            _LAPTOP.ppo,
            steps=24,
            epochs=2,
            learning_rate=5e-4,
            decay_samples=5e6,
            gamma=0.994,
        ),
    ),
    "laptop": _LAPTOP,
    "quadruped": _LAPTOP,
}
"""Training presets by name; the task of the same name belongs to each."""


def observation_size(task: TaskConfig) -> tuple[int, int]:
    """Return (actor inputs, actions) of a task."""
    from prism_motor.sim.robots import make_robot

    joints = len(make_robot(task.robot).joints)
    return task.observations.actor_frames * (11 + 3 * joints), joints


def make_arm(arm: str, preset: Preset, task: TaskConfig, **options: Any) -> ActorConfig:
    """Return the actor config of an arm.

    Args:
        arm: One of :data:`ARMS`.
        preset: Sizes shared by all arms.
        task: The task, for the observation size.
        **options: Further fields of the actor's config, e.g. ``degree``; those of ``mlp-larger``
            are of the gated actor that it matches.
    """
    check_choice("actor", arm, ARMS)
    if arm == "mlp":
        return apply_overrides(ActorConfig(hidden=preset.hidden), options, "actor.")
    if arm == "residual":
        residual = ResidualActorConfig(
            hidden=preset.hidden, latent=preset.latent, warmup=preset.warmup
        )
        return apply_overrides(residual, options, "actor.")
    gated = GatedActorConfig(hidden=preset.hidden, latent=preset.latent)
    gated = apply_overrides(gated, options, "actor.")
    if arm == "gated":
        return gated
    inputs, outputs = observation_size(task)
    return matched_mlp(build_actor(gated, inputs, outputs)).config


def make_config(
    preset: str,
    arm: str,
    *,
    seed: int = 1,
    name: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    **options: Any,
) -> TrainConfig:
    """Return the full config of a run by preset and arm.

    Args:
        preset: One of :data:`PRESETS`.
        arm: One of :data:`ARMS`.
        seed: Training seed.
        name: What the arm is called in tables, when several are of one kind.
        overrides: Settings by dotted key that differ from the preset, e.g. ``ppo.learning_rate``.
            Those of the task come before the arm is made: ``mlp-larger`` is matched to what
            ``gated`` would be on that task.
        **options: Further fields of the actor's config, e.g. ``degree``.
    """
    settings = PRESETS[check_choice("preset", preset, PRESETS)]
    changes = flatten(overrides or {})
    for key in changes:
        if key in ("preset", "arm", "seed"):
            raise ConfigError(f"{key} names the run and cannot be overridden; give it by itself.")
    keys = [key for key in changes if key.startswith("actor.")]
    actor = {**options, **{key.removeprefix("actor."): changes.pop(key) for key in keys}}
    plain = TrainConfig(
        preset=preset,
        arm=name or arm,
        task=TASKS[preset],
        actor=ActorConfig(),
        critic_hidden=settings.critic_hidden,
        ppo=settings.ppo,
        envs=settings.envs,
        iterations=settings.iterations,
        seed=seed,
        checkpoint_every=settings.checkpoint_every,
    )
    config = apply_overrides(plain, changes)
    return replace(config, actor=make_arm(arm, settings, config.task, **actor))
