"""Presets and arms for learning from demonstrations, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prism_motor._checks import check_choice
from prism_motor._registry import Registry
from prism_motor.manipulation.config import (
    ConditionerConfig,
    ManipulationConfig,
    NetworkConfig,
    OptimiserConfig,
)
from prism_motor.runs.configs import ConfigError, apply_overrides, flatten

ARMS: dict[str, ConditionerConfig] = {
    "linear": ConditionerConfig(kind="linear"),
    "mlp-matched": ConditionerConfig(kind="mlp", mlp_size="matched"),
    "mlp-large": ConditionerConfig(kind="mlp", mlp_size="large"),
    "prism": ConditionerConfig(kind="prism"),
}
"""Conditioner of the state history by arm."""

_NAMES = ("kind", "preset", "arm", "seed", "conditioner.kind", "conditioner.mlp_size")


@dataclass(frozen=True)
class HandlingPreset:
    """Settings of a preset, the same for every arm."""

    network: NetworkConfig
    """The policy."""
    optimiser: OptimiserConfig
    """The learner."""
    batch: int
    """Samples per update."""
    updates: int
    """Updates."""
    checkpoint_every: int
    """Updates between checkpoints."""


PRESETS: Registry[HandlingPreset] = Registry(
    "preset",
    {
        "paper": HandlingPreset(
            network=NetworkConfig(),
            optimiser=OptimiserConfig(),
            batch=64,
            updates=20_000,
            checkpoint_every=10_000,
        ),
        "laptop": HandlingPreset(
            network=NetworkConfig(image_size=64, encoder="small", widths=(64, 128, 256)),
            optimiser=OptimiserConfig(learning_rate=3e-4, warmup=200),
            batch=64,
            updates=6_000,
            checkpoint_every=1_000,
        ),
        "state": HandlingPreset(
            network=NetworkConfig(inputs="objects", widths=(64, 128)),
            optimiser=OptimiserConfig(learning_rate=1e-3, warmup=100),
            batch=64,
            updates=2_000,
            checkpoint_every=500,
        ),
    },
)
"""Presets by name."""


def make_config(
    preset: str,
    arm: str,
    *,
    seed: int = 1,
    name: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> ManipulationConfig:
    """Return the settings of a run by preset and arm.

    Args:
        preset: One of :data:`PRESETS`.
        arm: One of :data:`ARMS`.
        seed: Training seed.
        name: Name of the arm in tables; default: its own.
        overrides: Settings by dotted key that differ from the preset, including the task.
    """
    settings = PRESETS[preset]
    check_choice("arm", arm, ARMS)
    changes = flatten(overrides or {})
    for key in changes:
        if key in _NAMES:
            raise ConfigError(
                f"{key} names the run and cannot be overridden; give it as an argument."
            )
    config = ManipulationConfig(
        preset=preset,
        arm=name or arm,
        conditioner=ARMS[arm],
        network=settings.network,
        optimiser=settings.optimiser,
        batch=settings.batch,
        updates=settings.updates,
        seed=seed,
        checkpoint_every=settings.checkpoint_every,
    )
    return apply_overrides(config, changes)
