"""PRISM actors for mjlab: configs that replace an mjlab task's ``actor``.

Your own task, on the environment of a registered one::

    from mjlab.tasks.registry import load_env_cfg, load_rl_cfg, register_mjlab_task
    from prism_motor.integrations.mjlab import PrismModelCfg

    task = "Mjlab-Velocity-Flat-Unitree-G1"
    agent = load_rl_cfg(task)
    agent.actor = PrismModelCfg(
        hidden_dims=agent.actor.hidden_dims,
        obs_normalization=agent.actor.obs_normalization,
        latent=256,
    )
    register_mjlab_task("Prism-" + task, load_env_cfg(task), load_env_cfg(task, play=True), agent)

Checked with mjlab 1.6.0, which pins rsl-rl-lib 5.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from prism_motor._extras import MissingExtraError
from prism_motor.nn import (
    AfterActorConfig,
    GatedResidualActorConfig,
    PrismActorConfig,
    ResidualActorConfig,
)

try:
    from mjlab.rl import RslRlModelCfg  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError(
        "prism_motor.integrations.mjlab needs mjlab, which is not installed. Install it with: "
        "pip install mjlab"
    ) from error

from prism_motor.integrations.rsl_rl import GAUSSIAN


@dataclass
class PrismModelCfg(RslRlModelCfg):
    """The actor of the paper's Section 3 (:class:`prism_motor.nn.PrismActorConfig`)."""

    class_name: str = "prism_motor.integrations.rsl_rl:PrismModel"
    """Resolved by rsl_rl."""
    hidden_dims: tuple[int, ...] = PrismActorConfig.hidden
    """Hidden widths of the trunk."""
    distribution_cfg: dict[str, Any] | None = field(default_factory=lambda: dict(GAUSSIAN))
    """Action distribution."""
    latent: int = PrismActorConfig.latent
    """Width of the interaction stage."""
    degree: int = PrismActorConfig.degree
    """Polynomial degree of the interaction stage."""
    interaction: str = PrismActorConfig.interaction
    """Interaction layer by name; the alternatives give ablation arms."""
    gate_init: float = PrismActorConfig.gate_init
    """Initial gates."""
    warmup: int = PrismActorConfig.warmup
    """PPO updates over which the products fade in, 0 for none."""
    bound: float | None = PrismActorConfig.bound
    """Bounded mode for half precision."""
    bypass: tuple[int, ...] = ()
    """Indices of observations that join after the polynomial."""


GatedModelCfg = PrismModelCfg
"""The former name of :class:`PrismModelCfg`."""


@dataclass
class ResidualModelCfg(RslRlModelCfg):
    """The actor of the paper's Table 1 (:class:`prism_motor.nn.ResidualActorConfig`)."""

    class_name: str = "prism_motor.integrations.rsl_rl:ResidualModel"
    """Resolved by rsl_rl."""
    hidden_dims: tuple[int, ...] = ResidualActorConfig.hidden
    """Hidden widths of the trunk."""
    distribution_cfg: dict[str, Any] | None = field(default_factory=lambda: dict(GAUSSIAN))
    """Action distribution."""
    latent: int = ResidualActorConfig.latent
    """Width of the two branches."""
    degree: int = ResidualActorConfig.degree
    """Polynomial degree of the branch."""
    warmup: int = ResidualActorConfig.warmup
    """PPO updates until the polynomial branch is fully on; 0 keeps it on from the start."""
    bypass: tuple[int, ...] = ()
    """Indices of observations that join after the polynomial."""


@dataclass
class GatedResidualModelCfg(ResidualModelCfg):
    """The same with learned gates (:class:`prism_motor.nn.GatedResidualActorConfig`)."""

    class_name: str = "prism_motor.integrations.rsl_rl:GatedResidualModel"
    """Resolved by rsl_rl."""
    warmup: int = GatedResidualActorConfig.warmup
    """PPO updates until the polynomial branch is fully on; 0 keeps it on from the start."""
    gate_init: float = GatedResidualActorConfig.gate_init
    """Initial gates."""


@dataclass
class AfterModelCfg(RslRlModelCfg):
    """The actor of the paper's abstract (:class:`prism_motor.nn.AfterActorConfig`)."""

    class_name: str = "prism_motor.integrations.rsl_rl:AfterModel"
    """Resolved by rsl_rl."""
    hidden_dims: tuple[int, ...] = AfterActorConfig.hidden
    """Hidden widths of the trunk."""
    distribution_cfg: dict[str, Any] | None = field(default_factory=lambda: dict(GAUSSIAN))
    """Action distribution."""
    degree: int = AfterActorConfig.degree
    """Polynomial degree in the last hidden features."""
    gate_init: float = AfterActorConfig.gate_init
    """Initial gates."""
    warmup: int = AfterActorConfig.warmup
    """PPO updates over which the products fade in; 0 for none."""
    bound: float | None = AfterActorConfig.bound
    """Bounded mode for half precision."""
