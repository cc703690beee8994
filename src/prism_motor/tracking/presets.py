"""Tracking presets and the arms of a comparison, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from prism_motor._checks import check_choice
from prism_motor._ranges import Checked, Count, Seed, between
from prism_motor._registry import Registry
from prism_motor.runs.configs import apply_overrides, flatten_overrides
from prism_motor.tracking.config import (
    AnchorConfig,
    DiscriminatorConfig,
    LatentConfig,
    LearnerConfig,
    LearningSettings,
    ReplayConfig,
    TrackingConfig,
    TrackingNetworkConfig,
    WarmStartConfig,
)
from prism_motor.tracking.task import (
    NOMINAL,
    StartConfig,
    TrackingActionConfig,
    TrackingTask,
)


@dataclass(frozen=True, kw_only=True)
class TrackingPreset(Checked, section="preset"):
    """What a preset fixes for every arm."""

    task: TrackingTask
    """What is learned."""
    settings: LearningSettings
    """The learner; its networks are those of the baseline."""
    large: Annotated[int, between(2, 65_536)]
    """Width of the larger control."""
    envs: Annotated[int, between(1, 1_000_000)]
    """Environments."""
    updates: Count
    """Updates."""
    checkpoint_every: Count
    """Updates between checkpoints."""
    prioritise_every: Annotated[int, between(0, 10**9)] = 0
    """Updates between evaluations by which clips are drawn more often; 0: all alike."""
    seed: Seed = 1
    """Seed of the first run."""


_PAPER = TrackingPreset(
    # All clips of a folder of the user's: --task.clips motions/lafan.
    task=TrackingTask(),
    settings=LearningSettings(),
    large=2560,
    envs=512,
    updates=750,  # of 25 control steps of 512 environments: 9.6 million
    checkpoint_every=75,
    prioritise_every=150,
    seed=1000,
)

_LAPTOP = TrackingPreset(
    task=TrackingTask(
        clips=("stand", "wave", "squat", "twist", "sway", "bow", "walk-forward"),
        compact=True,
        history=2,
        ahead=8,
        actions=TrackingActionConfig(unit="clips"),
        starts=StartConfig(lying=0.0, after_fall=0.5),
        randomisation=NOMINAL,
    ),
    settings=LearningSettings(
        networks=TrackingNetworkConfig(
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
        discriminator=DiscriminatorConfig(
            learning_rate=1e-4, reward_bound=3.0, bounded_targets=True, every=2
        ),
        warm_start=WarmStartConfig(
            updates=1000,
            epochs=3,
            desired_kl=0.03,
            exploration=0.12,
            least_exploration=0.04,
        ),
        anchor=AnchorConfig(weight=100.0, final=100.0),
        learner=LearnerConfig(
            batch=256,
            sweeps=25,
            gradient_steps=1.0,
            warmup_steps=0,
            actor_delay=2_000,
            gamma=0.97,
            # What the actor sees, its latents too, keeps the meaning that the warm start gave it.
            backward_rate=0.0,
            statistics=0.0,
        ),
        replay=ReplayConfig(rows=1000, segment_rows=100),
    ),
    large=320,
    envs=256,
    updates=1300,
    checkpoint_every=50,
)

_TINY = replace(
    _LAPTOP,
    task=replace(_LAPTOP.task, clips=("stand", "wave")),
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
        warm_start=replace(
            _LAPTOP.settings.warm_start,
            updates=2,
            tumbling_steps=2,
            spreading_steps=5,
            cloning_steps=5,
            steps=8,
            critic_width=16,
        ),
        learner=replace(_LAPTOP.settings.learner, batch=64, sweeps=8, actor_delay=4),
        replay=ReplayConfig(rows=40, segment_rows=8),
    ),
    large=80,
    envs=8,
    updates=6,
    checkpoint_every=2,
)

PRESETS: Registry[TrackingPreset] = Registry(
    "preset", {"paper": _PAPER, "laptop": _LAPTOP, "tiny": _TINY}
)
"""Training presets by name."""

ARMS = ("mlp", "mlp-matched", "mlp-large", "prism")
"""Without a filter, with an MLP of the polynomial's size, wider, with the polynomial."""


def arm_networks(arm: str, preset: TrackingPreset) -> TrackingNetworkConfig:
    """Return the networks of an arm."""
    networks = preset.settings.networks
    changes = {
        "mlp": {},
        "mlp-matched": {"filter": "mlp"},
        "mlp-large": {"width": preset.large},
        "prism": {"filter": "prism"},
    }
    return replace(networks, **changes[check_choice("arm", arm, ARMS)])


def make_config(
    preset: str,
    arm: str,
    *,
    seed: int = 1,
    name: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> TrackingConfig:
    """Return the settings of a run by preset and arm.

    Args:
        preset: One of :data:`PRESETS`.
        arm: One of :data:`ARMS`.
        seed: Training seed.
        name: What the arm is called in tables, to distinguish several of one kind.
        overrides: Settings by dotted key that differ from the preset.
    """
    chosen = PRESETS[preset]
    changes = flatten_overrides(overrides)
    settings: dict[str, Any] = {
        one.name: getattr(chosen.settings, one.name) for one in fields(LearningSettings)
    }
    settings["networks"] = arm_networks(arm, chosen)
    config = TrackingConfig(
        preset=preset,
        arm=name or arm,
        seed=seed,
        task=chosen.task,
        **settings,
        envs=chosen.envs,
        updates=chosen.updates,
        checkpoint_every=chosen.checkpoint_every,
        prioritise_every=chosen.prioritise_every,
    )
    return apply_overrides(config, changes)
