"""Settings of a walking run and of its evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field

from prism_motor._checks import InputError, check_choice, check_size
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.task import LeggedTaskConfig
from prism_motor.nn import ActorConfig
from prism_motor.train.config import EvaluationConfig, RunConfig


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation, as rsl_rl implements it."""

    steps: int = 60
    """Control steps per environment and update."""
    epochs: int = 2
    """Passes over the samples of an update."""
    minibatches: int = 4
    """Gradient steps per pass."""
    learning_rate: float = 1e-5
    """Initial learning rate."""
    schedule: str = "adaptive"
    """``adaptive`` follows the KL divergence; ``linear`` falls to the final rate."""
    desired_kl: float = 0.01
    """Target divergence of the adaptive schedule."""
    final_learning_rate: float = 1e-5
    """Lowest rate of the linear schedule."""
    decay_samples: float = 5e6
    """Samples after which the linear schedule would reach zero."""
    gamma: float = 0.994
    """Discount."""
    gae_lambda: float = 0.9
    """Advantage smoothing."""
    clip: float = 0.2
    """Clip range of the probability ratio."""
    clip_value_loss: bool = True
    """Whether the value loss is clipped too."""
    value_weight: float = 1.0
    """Weight of the value loss."""
    entropy_weight: float = 0.001
    """Weight of the entropy bonus."""
    gradient_norm: float = 1.0
    """Largest gradient norm of actor and of critic."""
    initial_std: float = 1.0
    """Initial standard deviation of the actions."""
    normalise_observations: bool = False
    """Whether running statistics normalise the observations."""
    mirror: bool = False
    """Whether a left-right mirrored copy of every sample is learned from too."""

    def __post_init__(self) -> None:
        check_choice("schedule", self.schedule, ("adaptive", "linear"))
        for name in ("steps", "epochs", "minibatches"):
            check_size("ppo", name, getattr(self, name))
        for name in ("gamma", "gae_lambda"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(
                    f"ppo: {name} must be above 0 and at most 1, got {getattr(self, name)}."
                )
        for name in ("clip", "gradient_norm", "initial_std", "desired_kl", "decay_samples"):
            if getattr(self, name) <= 0:
                raise InputError(f"ppo: {name} must be above zero, got {getattr(self, name)}.")
        if self.learning_rate <= 0:
            raise InputError(f"ppo: learning_rate must be above zero, got {self.learning_rate}.")


@dataclass(frozen=True, kw_only=True)
class LocomotionConfig(RunConfig):
    """A run that learns to walk by reinforcement learning."""

    kind: str = "locomotion"
    task: LeggedTaskConfig
    """The task."""
    actor: ActorConfig
    """The policy network."""
    critic_hidden: tuple[int, ...] = (768, 256, 128)
    """Hidden widths of the critic, the same for every arm."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """The learner."""
    envs: int = 4096
    """Environments stepped at once, over all processes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("run", "envs", self.envs)
        if not self.actor.hidden:
            raise InputError("actor: hidden needs at least one width, e.g. --actor.hidden 256 128.")
        if self.ppo.minibatches > self.samples_per_update:
            raise InputError(
                f"ppo: {self.ppo.minibatches} minibatches cannot be made of the "
                f"{self.samples_per_update} samples per update (envs times ppo.steps)."
            )
        for width in self.critic_hidden:
            check_size("run", "every width of critic_hidden", width)

    @property
    def samples_per_update(self) -> int:
        """Control steps of all environments in one update."""
        return self.envs * self.ppo.steps


@dataclass(frozen=True, kw_only=True)
class WalkingEvaluation(EvaluationConfig):
    """How a walking policy is evaluated: the first episodes of every environment count."""

    conditions: tuple[str, ...] = ("nominal",)
    """Any of nominal, low-friction, payload, pushes, training."""
    seeds: tuple[int, ...] = (101, 102, 103)
    """Evaluation seeds."""
    envs: int = 100
    """Environments per seed."""
    episodes: int = 2
    """Episodes per environment, the first ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for condition in self.conditions:
            find_condition(condition)
        check_size("evaluation", "envs", self.envs)
