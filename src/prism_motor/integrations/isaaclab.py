"""PRISM actors for Isaac Lab 3.0: configs that replace a task's ``actor``.

Your own agent, on a task that is registered with Isaac Lab::

    from isaaclab.utils import configclass
    from isaaclab_tasks.core.velocity.config.g1.agents.rsl_rl_ppo_cfg import G1FlatPPORunnerCfg
    from prism_motor.integrations.isaaclab import PrismModelCfg

    @configclass
    class PrismG1FlatPPORunnerCfg(G1FlatPPORunnerCfg):
        def __post_init__(self):
            super().__post_init__()
            self.experiment_name = "g1_flat_prism"
            self.actor = PrismModelCfg(hidden_dims=self.actor.hidden_dims, latent=256)

Name it as ``rsl_rl_cfg_entry_point`` where you register your task; ``isaaclab train`` does the
rest. Checked with Isaac Lab 3.0.0, which pins rsl-rl-lib 5.5.1 and needs Python 3.12.
"""

from __future__ import annotations

from dataclasses import field

from prism_motor._extras import MissingExtraError
from prism_motor.nn import (
    AfterActorConfig,
    GatedResidualActorConfig,
    PrismActorConfig,
    ResidualActorConfig,
)

try:
    from isaaclab.utils import configclass  # pyright: ignore[reportMissingImports]
    from isaaclab_rl.rsl_rl import RslRlMLPModelCfg  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError(
        "prism_motor.integrations.isaaclab needs Isaac Lab 3.0, which is not installed. Install it "
        "with: pip install isaaclab"
    ) from error

from prism_motor.integrations.rsl_rl import GAUSSIAN


def _gaussian() -> RslRlMLPModelCfg.DistributionCfg:
    return RslRlMLPModelCfg.GaussianDistributionCfg(**GAUSSIAN)


@configclass
class PrismModelCfg(RslRlMLPModelCfg):
    """The actor of the paper's Section 3 (:class:`prism_motor.nn.PrismActorConfig`)."""

    class_name: str = "prism_motor.integrations.rsl_rl:PrismModel"
    """Resolved by rsl_rl."""
    hidden_dims: list[int] = field(default_factory=lambda: list(PrismActorConfig.hidden))
    """Hidden widths of the trunk."""
    activation: str = PrismActorConfig.activation
    """Activation of encoder and trunk."""
    distribution_cfg: RslRlMLPModelCfg.DistributionCfg | None = field(default_factory=_gaussian)
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


@configclass
class ResidualModelCfg(RslRlMLPModelCfg):
    """The actor of the paper's Table 1 (:class:`prism_motor.nn.ResidualActorConfig`)."""

    class_name: str = "prism_motor.integrations.rsl_rl:ResidualModel"
    """Resolved by rsl_rl."""
    hidden_dims: list[int] = field(default_factory=lambda: list(ResidualActorConfig.hidden))
    """Hidden widths of the trunk."""
    activation: str = ResidualActorConfig.activation
    """Activation of encoder and trunk."""
    distribution_cfg: RslRlMLPModelCfg.DistributionCfg | None = field(default_factory=_gaussian)
    """Action distribution."""
    latent: int = ResidualActorConfig.latent
    """Width of the two branches."""
    degree: int = ResidualActorConfig.degree
    """Polynomial degree of the branch."""
    warmup: int = ResidualActorConfig.warmup
    """PPO updates until the polynomial branch is fully on; 0 keeps it on from the start."""
    bypass: tuple[int, ...] = ()
    """Indices of observations that join after the polynomial."""


@configclass
class GatedResidualModelCfg(ResidualModelCfg):
    """The same with learned gates (:class:`prism_motor.nn.GatedResidualActorConfig`)."""

    class_name: str = "prism_motor.integrations.rsl_rl:GatedResidualModel"
    """Resolved by rsl_rl."""
    warmup: int = GatedResidualActorConfig.warmup
    """PPO updates until the polynomial branch is fully on; 0 keeps it on from the start."""
    gate_init: float = GatedResidualActorConfig.gate_init
    """Initial gates."""


@configclass
class AfterModelCfg(RslRlMLPModelCfg):
    """The actor of the paper's abstract (:class:`prism_motor.nn.AfterActorConfig`)."""

    class_name: str = "prism_motor.integrations.rsl_rl:AfterModel"
    """Resolved by rsl_rl."""
    hidden_dims: list[int] = field(default_factory=lambda: list(AfterActorConfig.hidden))
    """Hidden widths of the trunk."""
    activation: str = AfterActorConfig.activation
    """Activation of the trunk."""
    distribution_cfg: RslRlMLPModelCfg.DistributionCfg | None = field(default_factory=_gaussian)
    """Action distribution."""
    degree: int = AfterActorConfig.degree
    """Polynomial degree in the last hidden features."""
    gate_init: float = AfterActorConfig.gate_init
    """Initial gates."""
    warmup: int = AfterActorConfig.warmup
    """PPO updates over which the products fade in; 0 for none."""
    bound: float | None = AfterActorConfig.bound
    """Bounded mode for half precision."""
