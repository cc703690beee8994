"""Walking presets and the arms of a comparison, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from prism_motor._checks import check_choice
from prism_motor._registry import Registry
from prism_motor.locomotion.config import LocomotionConfig, PPOConfig
from prism_motor.locomotion.mirror import can_mirror
from prism_motor.locomotion.observations import observation_size, resolve_bypass
from prism_motor.locomotion.tasks import TASKS
from prism_motor.nn import ACTORS, ActorConfig, build_actor, matched_mlp
from prism_motor.runs.configs import apply_overrides, flatten_overrides

if TYPE_CHECKING:
    from prism_motor.locomotion.task import LeggedTaskConfig


@dataclass(frozen=True)
class WalkingPreset:
    """What a preset fixes for every arm."""

    hidden: tuple[int, ...]
    """Hidden widths of the actor's trunk."""
    large: tuple[int, ...]
    """Hidden widths of the paper's larger MLP."""
    latent: int
    """Width of the interaction stage."""
    critic_hidden: tuple[int, ...]
    """Hidden widths of the critic."""
    envs: int
    """Environments."""
    updates: int
    """Policy updates."""
    checkpoint_every: int
    """Updates between checkpoints."""
    warmup: int
    """Policy updates over which the polynomial of actors that have a fade-in is activated."""
    ppo: PPOConfig
    """The learner."""


_PAPER = WalkingPreset(
    hidden=(512, 256, 128),
    large=(816, 352, 160),
    latent=256,
    critic_hidden=(768, 256, 128),
    envs=4096,
    updates=3001,
    checkpoint_every=100,
    warmup=500,
    ppo=PPOConfig(clip_together=True, kl_offset=1e-5),
)

_SMALL = WalkingPreset(
    hidden=(256, 128, 64),
    large=(408, 176, 80),
    latent=96,
    critic_hidden=(256, 128, 64),
    envs=256,
    updates=1000,
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

_LAPTOP = replace(
    _SMALL,
    updates=750,
    ppo=replace(
        _SMALL.ppo,
        learning_rate=1.5e-3,
        decay_samples=3.07e6,
        # The reference motion walks by itself: little needs to be found by noise, which makes
        # velocities hard to learn.
        initial_std=0.3,
        entropy_weight=0.001,
    ),
)

PRESETS: Registry[WalkingPreset] = Registry(
    "preset",
    {
        "paper": _PAPER,
        "g1": replace(
            _PAPER,
            envs=_SMALL.envs,
            updates=800,
            checkpoint_every=_SMALL.checkpoint_every,
            warmup=_SMALL.warmup,
            # 705 inputs need a smaller rate than 235.
            ppo=replace(
                _SMALL.ppo,
                steps=24,
                epochs=2,
                learning_rate=5e-4,
                decay_samples=5e6,
                gamma=0.994,
            ),
        ),
        "laptop": _LAPTOP,
        "quadruped": _SMALL,
    },
)
"""Training presets by name; each belongs to the task of the same name."""


def find_preset(name: str) -> WalkingPreset:
    """Return a preset by name; a task without its own preset is trained like ``quadruped``."""
    if name in PRESETS:
        return PRESETS[name]
    if name not in TASKS:  # an error that names the nearest of all presets, a user's among them
        return Registry("preset", {**PRESETS, **dict.fromkeys(TASKS, _SMALL)})[name]
    return replace(_SMALL, ppo=replace(_SMALL.ppo, mirror=can_mirror(TASKS[name])))


def preset_names() -> dict[str, Any]:
    """Return all presets: those defined here, then users' tasks."""
    return {name: find_preset(name) for name in (*PRESETS, *TASKS)}


MATCHED = "mlp-matched"
"""The plain MLP with the parameters of ``prism``; ``mlp-matched-NAME`` matches another arm."""


def arm_names() -> list[str]:
    """Return all arms: one per actor, the larger MLP, and a matched control for the others."""
    others = [name for name in ACTORS if name != "mlp"]
    controls = [control_of(name) for name in others]
    return ["mlp", "mlp-large", *controls, *others]


def control_of(actor: str) -> str:
    """Return the arm that is the plain MLP with the parameters of an actor."""
    return MATCHED if actor == "prism" else f"{MATCHED}-{actor.removeprefix('prism-')}"


def matched_actor(arm: str) -> str | None:
    """Return the actor whose parameters an arm has, if it is a matched control."""
    return next((name for name in ACTORS if name != "mlp" and control_of(name) == arm), None)


def make_actor_config(
    arm: str, preset: WalkingPreset, task: LeggedTaskConfig, options: Mapping[str, Any]
) -> ActorConfig:
    """Return the actor config of an arm.

    Args:
        arm: One of :func:`arm_names`.
        preset: Sizes shared by all arms.
        task: The task, for the observation size.
        options: Further fields of the actor's config, e.g. ``degree``; for a matched control, of
            the actor that it matches.
    """
    check_choice("arm", arm, arm_names())
    if arm == "mlp-large":
        return apply_overrides(ActorConfig(hidden=preset.large), options, "actor.")
    matched = matched_actor(arm)
    kind = ACTORS[matched or arm]
    shared = {"hidden": preset.hidden, "latent": preset.latent}
    defaults = {field.name: field.default for field in fields(kind)}
    if defaults.get("warmup"):  # it fades in by default, the preset says how fast
        shared["warmup"] = preset.warmup
    actor = kind(**{name: value for name, value in shared.items() if name in defaults})
    actor = apply_overrides(actor, options, "actor.")
    if matched is None:
        return actor
    inputs, outputs = observation_size(task)
    return matched_mlp(build_actor(resolve_bypass(actor, task), inputs, outputs)).config


def make_config(
    preset: str,
    arm: str,
    *,
    seed: int = 1,
    name: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    match: bool = True,
) -> LocomotionConfig:
    """Return the settings of a run by preset and arm.

    Args:
        preset: One of :data:`PRESETS`.
        arm: One of :func:`arm_names`.
        seed: Training seed.
        name: What the arm is called in tables, to distinguish several of one kind.
        overrides: Settings by dotted key that differ from the preset, e.g. ``ppo.learning_rate``.
            Those of the task apply before the actor is made: a control is matched on that task.
        match: Whether to match a control; if not, its actor is the one that it would match.
    """
    settings = find_preset(preset)
    changes = flatten_overrides(overrides)
    keys = [key for key in changes if key.startswith("actor.")]
    actor = {key.removeprefix("actor."): changes.pop(key) for key in keys}
    plain = LocomotionConfig(
        preset=preset,
        arm=name or arm,
        task=TASKS[preset],
        actor=ActorConfig(),
        critic_hidden=settings.critic_hidden,
        ppo=settings.ppo,
        envs=settings.envs,
        updates=settings.updates,
        seed=seed,
        checkpoint_every=settings.checkpoint_every,
    )
    config = apply_overrides(plain, changes)
    made = arm if match else matched_actor(arm) or arm
    return replace(config, actor=make_actor_config(made, settings, config.task, actor))
