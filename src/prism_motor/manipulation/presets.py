"""Presets and arms for learning from demonstrations, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from prism_motor._checks import check_choice
from prism_motor._registry import Registry
from prism_motor.manipulation.backbones import BACKBONES
from prism_motor.manipulation.config import (
    ConditionerConfig,
    HandlingEvaluation,
    HandlingTask,
    ManipulationConfig,
    NetworkConfig,
    OptimiserConfig,
    PolicyNetwork,
)
from prism_motor.manipulation.smolvla.config import SmolVLANetworkConfig
from prism_motor.runs.configs import apply_overrides, flatten_overrides

ARMS: dict[str, ConditionerConfig] = {
    "linear": ConditionerConfig(kind="linear"),
    "mlp-matched": ConditionerConfig(kind="mlp", mlp_size="matched"),
    "mlp-large": ConditionerConfig(kind="mlp", mlp_size="large"),
    "prism": ConditionerConfig(kind="prism"),
}
"""Conditioner of the state by arm."""

_OF_ARMS = ("conditioner.kind", "conditioner.mlp_size")


@dataclass(frozen=True)
class HandlingPreset:
    """Settings of a preset, the same for every arm."""

    network: PolicyNetwork
    """The policy."""
    optimiser: OptimiserConfig
    """The learner."""
    batch: int
    """Samples per update."""
    updates: int
    """Updates."""
    checkpoint_every: int
    """Updates between checkpoints."""
    reported: int | None = None
    """Update whose checkpoint is evaluated; default: the last."""
    latent: int | None = 256
    """Width of prism's interaction stage; none: that of its output."""
    task: HandlingTask = field(default_factory=HandlingTask)
    """What is learned."""
    demos: str = ""
    """The demonstrations."""
    seed: int = 1
    """Training seed."""
    rollouts: int = HandlingEvaluation.episodes
    """Episodes per task in an evaluation."""
    random_shift: int = 0
    """Largest random shift of training images, pixels."""


_SMOLVLA = OptimiserConfig(weight_decay=1e-10, betas=(0.9, 0.95), last_rate=2.5e-6)
"""What LeRobot trains SmolVLA with, unless the paper says otherwise."""

_PILOT = HandlingTask(suite="so101", name="mouse-click-v0")
"""The paper's pilot on hardware."""

PRESETS: Registry[HandlingPreset] = Registry(
    "preset",
    {
        "paper": HandlingPreset(
            network=NetworkConfig(renderer="stock"),
            optimiser=OptimiserConfig(),
            batch=64,
            updates=20_000,
            checkpoint_every=10_000,
            rollouts=10,
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
        "pilot": HandlingPreset(
            network=NetworkConfig(image_size=64, encoder="small", widths=(64, 128)),
            optimiser=OptimiserConfig(learning_rate=1e-3, warmup=100),
            batch=32,
            updates=3_000,
            checkpoint_every=1_000,
            task=_PILOT,
            rollouts=50,
            random_shift=4,
        ),
        "pilot-paper": HandlingPreset(
            network=NetworkConfig(),
            optimiser=OptimiserConfig(),
            batch=64,
            updates=20_000,
            checkpoint_every=10_000,
            task=_PILOT,
            rollouts=50,
            random_shift=8,
        ),
        "smolvla-paper": HandlingPreset(
            network=SmolVLANetworkConfig(renderer="stock"),
            optimiser=replace(_SMOLVLA, warmup=100),
            batch=64,
            updates=100_000,
            checkpoint_every=20_000,
            reported=80_000,
            latent=None,
            task=HandlingTask(suite="libero", name="all"),
            demos="HuggingFaceVLA/libero",
            seed=1000,
            rollouts=50,
        ),
        "smolvla-laptop": HandlingPreset(
            network=SmolVLANetworkConfig(
                vlm="random-laptop",
                vlm_layers=4,
                image_size=64,
                encoder_size=64,
                horizon=16,
                action_steps=8,
            ),
            optimiser=replace(_SMOLVLA, learning_rate=5e-4, warmup=200),
            batch=32,
            updates=10_000,
            checkpoint_every=1_000,
            latent=None,
            task=HandlingTask(suite="libero_goal", name="7+0"),
            demos="demos",
        ),
        "smolvla-tiny": HandlingPreset(
            network=SmolVLANetworkConfig(
                vlm="random-tiny",
                vlm_layers=2,
                image_size=32,
                encoder_size=32,
                horizon=8,
                action_steps=8,
                inference_steps=2,
            ),
            optimiser=replace(_SMOLVLA, learning_rate=1e-3, warmup=2),
            batch=4,
            updates=6,
            checkpoint_every=3,
            latent=None,
            task=HandlingTask(suite="libero_goal", name="7+0"),
            demos="demos",
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
    changes = flatten_overrides(overrides, _OF_ARMS)
    config = ManipulationConfig(
        preset=preset,
        arm=name or arm,
        task=settings.task,
        demos=settings.demos,
        conditioner=replace(ARMS[arm], latent=settings.latent),
        network=settings.network,
        optimiser=settings.optimiser,
        batch=settings.batch,
        updates=settings.updates,
        reported=settings.reported,
        seed=seed,
        checkpoint_every=settings.checkpoint_every,
        random_shift=settings.random_shift,
    )
    return apply_overrides(config, changes)


def preset_of(backbone: str, preset: str | None) -> str:
    """Return the full name of a backbone's preset: ``smolvla`` and ``paper`` are ``smolvla-paper``.

    Args:
        backbone: The backbone.
        preset: A preset, with or without the backbone in front; default: one for a laptop.
    """
    check_choice("backbone", backbone, BACKBONES)
    known = {
        name: settings.network.backbone
        for name, settings in PRESETS.items()
        if settings.network.backbone == backbone
    }
    if preset in known:
        return preset
    names = {name.removeprefix(f"{backbone}-"): name for name in known}
    default = "state" if "state" in names else "laptop"
    return names[check_choice(f"preset of {backbone}", preset or default, names)]
