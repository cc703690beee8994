"""Presets and arms of the comparison on Gymnasium's environments, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from prism_motor._checks import check_choice
from prism_motor._registry import Registry
from prism_motor.gymnasium_control.config import LEARNERS, ControlConfig, ControlTask
from prism_motor.gymnasium_control.environments import env_facts
from prism_motor.gymnasium_control.policy import actor_outputs
from prism_motor.gymnasium_control.zoo import ZooSettings, zoo_settings
from prism_motor.nn import ActorConfig, PrismActorConfig, build_actor, matched_mlp
from prism_motor.runs.configs import apply_overrides, flatten_overrides


@dataclass(frozen=True)
class ControlPreset:
    """What a preset changes in the zoo's settings, for every arm."""

    samples: Mapping[str, int] = field(default_factory=dict)
    """Steps of the environment by algorithm; empty: the zoo's."""
    checkpoint_every: int = 50
    """Updates between checkpoints."""
    learner: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of the learner by algorithm."""
    hidden: tuple[int, ...] = ()
    """Hidden widths; empty: the zoo's."""


PRESETS: Registry[ControlPreset] = Registry(
    "preset",
    {
        "zoo": ControlPreset(),
        "laptop": ControlPreset(samples={"ppo": 100_000, "sac": 20_000}, checkpoint_every=10),
        "tiny": ControlPreset(
            samples={"ppo": 6 * 48, "sac": 6 * 20},
            checkpoint_every=2,
            learner={
                "ppo": {"steps": 48, "batch": 16, "epochs": 2},
                "sac": {
                    "steps": 20,
                    "batch": 8,
                    "buffer": 70,
                    "learning_starts": 30,
                    "segment_rows": 16,
                },
            },
            hidden=(24, 24),
        ),
    },
)
"""Presets by name: the zoo's budget; minutes on a core; seconds."""

ARMS = ("mlp", "mlp-matched", "mlp-large", "prism")
"""Stable-Baselines3's own network, one of PRISM's size, a larger one, and PRISM."""

LEADING = ("task.env", "algorithm")
"""Settings that decide what the zoo says about the others."""

_LARGER = 1.6
"""How much wider the layers of mlp-large are: as the paper's larger MLP of the G1 in its first."""


def make_actor_config(
    arm: str, zoo: ZooSettings, algorithm: str, env: str, options: Mapping[str, Any]
) -> ActorConfig:
    """Return the actor of an arm.

    Args:
        arm: One of :data:`ARMS`.
        zoo: Sizes shared by all arms.
        algorithm: Name of the algorithm: the actor of SAC has a second head.
        env: The environment, for its sizes.
        options: Further fields of the actor's config, e.g. ``degree``; for the matched MLP, of the
            actor that it matches.
    """
    check_choice("arm", arm, ARMS)
    plain = ActorConfig(zoo.hidden, zoo.activation)
    if arm == "mlp":
        return apply_overrides(plain, options, "actor.")
    if arm == "mlp-large":
        wider = tuple(8 * round(_LARGER * width / 8) for width in zoo.hidden)
        return apply_overrides(replace(plain, hidden=wider), options, "actor.")
    # As in the paper's actor of the G1, the latent is half as wide as the layer behind it.
    prism = PrismActorConfig(zoo.hidden, zoo.activation, latent=max(1, zoo.hidden[0] // 2))
    prism = apply_overrides(prism, options, "actor.")
    if arm == "prism":
        return prism
    facts = env_facts(env)
    outputs = actor_outputs(algorithm, facts.actions)
    return matched_mlp(build_actor(prism, facts.observations, outputs)).config


def make_config(
    preset: str,
    arm: str,
    *,
    seed: int = 1,
    name: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    match: bool = True,
) -> ControlConfig:
    """Return the settings of a run by preset and arm.

    Args:
        preset: One of :data:`PRESETS`.
        arm: One of :data:`ARMS`.
        seed: Training seed.
        name: What the arm is called in tables, to distinguish several of one kind.
        overrides: Settings by dotted key that differ from the preset. ``task.env`` and
            ``algorithm`` decide what the zoo says about the others.
        match: Whether to match the MLP; if not, its actor is the one that it would match.
    """
    chosen = PRESETS[preset]
    changes = flatten_overrides(overrides, ("learner.name", "actor.name"))
    env = ControlTask(changes.pop("task.env", ControlTask.env)).env
    algorithm = check_choice("algorithm", changes.pop("algorithm", "ppo"), LEARNERS)
    zoo = zoo_settings(algorithm, env)
    if chosen.hidden:
        zoo = replace(zoo, hidden=chosen.hidden)
    keys = [key for key in changes if key.startswith("actor.")]
    actor = {key.removeprefix("actor."): changes.pop(key) for key in keys}
    made = arm if match or arm != "mlp-matched" else "prism"
    plain = ControlConfig(
        preset=preset,
        arm=name or arm,
        seed=seed,
        task=ControlTask(env),
        learner=apply_overrides(zoo.learner, chosen.learner.get(algorithm, {})),
        actor=make_actor_config(made, zoo, algorithm, env, actor),
        critic_hidden=zoo.hidden,
        checkpoint_every=chosen.checkpoint_every,
    )
    changed = apply_overrides(plain, {k: v for k, v in changes.items() if k != "updates"})
    samples = chosen.samples.get(algorithm, zoo.samples)
    return replace(changed, updates=changes.get("updates", changed.updates_of(samples)))
