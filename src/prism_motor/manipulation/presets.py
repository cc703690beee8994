"""Presets of learning from demonstrations, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prism_motor.manipulation.config import (
    ConditionerConfig,
    ImitationConfig,
    NetworkConfig,
    OptimiserConfig,
    TaskConfig,
)
from prism_motor.manipulation.environment import Environment
from prism_motor.nn.checks import check_choice
from prism_motor.runs.configs import ConfigError, apply_overrides, flatten

CONDITIONERS = ("prism", "linear", "mlp")
"""Arms by name."""

_NAMES = ("preset", "arm", "seed", "kind", "demos", "conditioner.kind")


@dataclass(frozen=True)
class Preset:
    """What a preset fixes for every arm."""

    network: NetworkConfig
    """The policy."""
    optimiser: OptimiserConfig
    """The learner."""
    batch: int
    """Samples of an update."""
    steps: int
    """Updates."""
    checkpoint_every: int
    """Updates between checkpoints."""


PRESETS: dict[str, Preset] = {
    "paper": Preset(
        network=NetworkConfig(),
        optimiser=OptimiserConfig(),
        batch=64,
        steps=20_000,
        checkpoint_every=10_000,
    ),
    "laptop": Preset(
        network=NetworkConfig(image_size=64, encoder="small", widths=(64, 128, 256)),
        optimiser=OptimiserConfig(learning_rate=3e-4, warmup=200),
        batch=64,
        steps=6_000,
        checkpoint_every=1_000,
    ),
    "state": Preset(
        network=NetworkConfig(inputs="objects", widths=(64, 128)),
        optimiser=OptimiserConfig(learning_rate=1e-3, warmup=100),
        batch=64,
        steps=2_000,
        checkpoint_every=500,
    ),
}
"""Presets by name."""


def describe_task(environment: Environment, network: NetworkConfig) -> TaskConfig:
    """Return what a policy must know of an environment."""
    return TaskConfig(
        suite=environment.task.suite,
        name=environment.task.name,
        state=len(environment.state_names),
        objects=len(environment.object_names),
        action=len(environment.action_names),
        cameras=environment.cameras if network.inputs == "images" else (),
    )


def make_config(
    preset: str,
    conditioner: str,
    task: Environment | TaskConfig,
    demos: str,
    *,
    seed: int = 1,
    name: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> ImitationConfig:
    """Return the full config of a run by preset and arm.

    Args:
        preset: One of :data:`PRESETS`.
        conditioner: One of :data:`CONDITIONERS`.
        task: The task: its environment, or what is known of it already.
        demos: Folder of the demonstrations, or their name on the hub.
        seed: Training seed.
        name: What the arm is called in tables; default: the conditioner.
        overrides: Settings by dotted key that differ from the preset.
    """
    settings = PRESETS[check_choice("preset", preset, PRESETS)]
    check_choice("conditioner", conditioner, CONDITIONERS)
    changes = flatten(overrides or {})
    for key in changes:
        if key in _NAMES or key.startswith("task."):
            raise ConfigError(f"{key} names the run and cannot be overridden; give it by itself.")
    if not isinstance(task, TaskConfig):
        network = apply_overrides(settings.network, _part(changes, "network."), "network.")
        task = describe_task(task, network)
    config = ImitationConfig(
        preset=preset,
        arm=name or conditioner,
        task=task,
        demos=demos,
        conditioner=ConditionerConfig(kind=conditioner),
        network=settings.network,
        optimiser=settings.optimiser,
        batch=settings.batch,
        steps=settings.steps,
        seed=seed,
        checkpoint_every=settings.checkpoint_every,
    )
    return apply_overrides(config, changes)


def _part(settings: Mapping[str, Any] | None, prefix: str) -> dict[str, Any]:
    """Return the settings of one group, without its name."""
    flat = flatten(settings or {})
    return {k.removeprefix(prefix): value for k, value in flat.items() if k.startswith(prefix)}
