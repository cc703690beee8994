"""Tracking presets and the arms of a comparison, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from prism_motor._checks import check_choice
from prism_motor._ranges import Checked, Count, Seed, between
from prism_motor._registry import Registry
from prism_motor.tracking.config import (
    CloningConfig,
    DiscriminatorConfig,
    LatentConfig,
    LearnerConfig,
    NetworkConfig,
    ReplayConfig,
    TrackingSettings,
)


@dataclass(frozen=True, kw_only=True)
class TrackingPreset(Checked, section="preset"):
    """What a preset fixes for every arm."""

    settings: TrackingSettings
    """The learner; its networks are those of the baseline."""
    large: Annotated[int, between(2, 65_536)]
    """Width of the larger control."""
    envs: Annotated[int, between(1, 1_000_000)]
    """Environments."""
    steps: Count
    """Environment steps."""
    seed: Seed
    """Seed of the first run."""


_PAPER = TrackingPreset(
    settings=TrackingSettings(), large=2560, envs=512, steps=9_600_000, seed=1000
)

_LAPTOP = TrackingPreset(
    settings=TrackingSettings(
        networks=NetworkConfig(
            blocks="simple",
            width=256,
            layers=1,
            critic_embedding=2,
            latent=64,
            backward_width=256,
            discriminator_width=128,
            discriminator_layers=2,
            critic_history=False,
        ),
        # Short clips are followed, too.
        latents=LatentConfig(follow_steps=100),
        # At the paper's rates neither the backward map nor the discriminator moves in 50,000
        # updates; what holds the discriminator back instead is in DiscriminatorConfig.
        discriminator=DiscriminatorConfig(
            learning_rate=1e-4, reward_bound=3.0, bounded_targets=True, every=2
        ),
        cloning=CloningConfig(weight=1.0, hold=2_000, fade=20_000, final=0.05),
        learner=LearnerConfig(
            batch=256,
            updates_per_sweep=1.0,
            warmup_steps=2_560,
            gamma=0.97,
            backward_rate=1e-4,
        ),
        replay=ReplayConfig(rows=4000, segment_rows=100),
        compact=True,
    ),
    large=320,
    envs=64,
    steps=2_000_000,
    seed=1,
)

PRESETS: Registry[TrackingPreset] = Registry(
    "preset",
    {
        "paper": _PAPER,
        "laptop": _LAPTOP,
        "tiny": TrackingPreset(
            settings=replace(
                _LAPTOP.settings,
                networks=replace(
                    _LAPTOP.settings.networks,
                    width=64,
                    latent=16,
                    backward_width=32,
                    discriminator_width=32,
                ),
                latents=replace(_LAPTOP.settings.latents, ring=256, follow_steps=20),
                learner=replace(_LAPTOP.settings.learner, batch=64, warmup_steps=64),
                replay=ReplayConfig(rows=64, segment_rows=8),
            ),
            large=80,
            envs=8,
            steps=2_000,
            seed=1,
        ),
    },
)
"""Training presets by name."""

ARMS = ("mlp", "mlp-matched", "mlp-large", "prism")
"""Without a filter, with an MLP of the polynomial's size, wider, with the polynomial."""


def arm_networks(arm: str, preset: TrackingPreset) -> NetworkConfig:
    """Return the networks of an arm."""
    networks = preset.settings.networks
    changes = {
        "mlp": {},
        "mlp-matched": {"filter": "mlp"},
        "mlp-large": {"width": preset.large},
        "prism": {"filter": "prism"},
    }
    return replace(networks, **changes[check_choice("arm", arm, ARMS)])
