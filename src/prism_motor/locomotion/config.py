"""Settings of a walking run, of its evaluation and of its videos."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from prism_motor._checks import InputError, check_choice
from prism_motor._console import count
from prism_motor._ranges import Checked, Seed, Seeds, above, between, length
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.task import LeggedTaskConfig, find_config_type
from prism_motor.nn import ActorConfig
from prism_motor.sim.engines import ContactRoom, EngineName
from prism_motor.train.config import EvaluationConfig, RunConfig

if TYPE_CHECKING:
    from prism_motor.locomotion.video import VideoConfig


@dataclass(frozen=True)
class PPOConfig(Checked, section="ppo"):
    """Proximal policy optimisation, as rsl_rl implements it."""

    steps: Annotated[int, between(1, 100_000)] = 60
    """Control steps per environment and update."""
    epochs: Annotated[int, between(1, 1000)] = 2
    """Passes over the samples of an update."""
    minibatches: Annotated[int, between(1, 100_000)] = 4
    """Gradient steps per pass."""
    learning_rate: Annotated[float, above(0, 100)] = 1e-5
    """Initial learning rate."""
    schedule: str = "adaptive"
    """``adaptive`` follows the KL divergence; ``linear`` falls to the final rate."""
    desired_kl: Annotated[float, above(0, 100)] = 0.01
    """Target divergence of the adaptive schedule."""
    final_learning_rate: Annotated[float, between(0, 100)] = 1e-5
    """Lowest rate of the linear schedule."""
    decay_samples: Annotated[float, between(1, 1e15)] = 5e6
    """Samples after which the linear schedule would reach zero."""
    gamma: Annotated[float, above(0, 1)] = 0.994
    """Discount."""
    gae_lambda: Annotated[float, above(0, 1)] = 0.9
    """Advantage smoothing."""
    clip: Annotated[float, above(0, 10)] = 0.2
    """Clip range of the probability ratio."""
    clip_value_loss: bool = True
    """Whether the value loss is clipped too."""
    value_weight: Annotated[float, between(0, 1000)] = 1.0
    """Weight of the value loss."""
    entropy_weight: Annotated[float, between(0, 100)] = 0.001
    """Weight of the entropy bonus."""
    gradient_norm: Annotated[float, above(0, 1e6)] = 1.0
    """Largest gradient norm of actor and of critic."""
    clip_together: bool = False
    """Whether the norm is that of actor and critic together, as in rsl_rl 1."""
    kl_offset: Annotated[float, between(0, 1)] = 0.0
    """Added to the ratio of standard deviations in the KL divergence; rsl_rl 1 has 1e-5."""
    initial_std: Annotated[float, above(0, 100)] = 1.0
    """Initial standard deviation of the actions."""
    normalise_observations: bool = False
    """Whether running statistics normalise the observations."""
    mirror: bool = False
    """Whether a left-right mirrored copy of every sample is learned from too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("schedule", self.schedule, ("adaptive", "linear"))


@dataclass(frozen=True, kw_only=True)
class LocomotionConfig(RunConfig):
    """A run that learns to walk by reinforcement learning."""

    kind: str = "locomotion"
    task: LeggedTaskConfig
    """The task."""
    actor: ActorConfig
    """The policy network."""
    critic_hidden: Annotated[tuple[int, ...], between(1, 8192), length(1, 16)] = (768, 256, 128)
    """Hidden widths of the critic, the same for every arm."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """The learner."""
    envs: Annotated[int, between(1, 1_000_000)] = 4096
    """Environments stepped at once, over all processes."""
    engine: EngineName = "cpu"
    """What steps the robots: cpu, MuJoCo; gpu, MuJoCo Warp on the device (extra gpu); auto: gpu on
    cuda where it is installed."""
    contacts: ContactRoom = 0
    """Room for contacts per robot in the gpu engine; 0: as many as its geometry can need."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.task, find_config_type(self.task.kind)):
            raise InputError(
                f"task.kind is {self.task.kind!r}, but the settings are those of another kind. "
                "Leave it out: the preset has it."
            )
        if not self.actor.hidden:
            raise InputError("actor: hidden needs at least one width, e.g. --actor.hidden 256 128.")
        if self.ppo.minibatches > self.samples_per_update:
            raise InputError(
                f"ppo: {self.ppo.minibatches} minibatches cannot be made of the "
                f"{self.samples_per_update} samples per update (envs times ppo.steps)."
            )

    @property
    def samples_per_update(self) -> int:
        """Control steps of all environments in one update."""
        return self.envs * self.ppo.steps

    def share(self, processes: int) -> int:
        """Return the environments of each of several processes."""
        if self.envs % processes:
            raise InputError(
                f"{count(self.envs, 'environment')} cannot be shared evenly by {processes} "
                f"processes; give a multiple of {processes} with --envs."
            )
        return self.envs // processes


@dataclass(frozen=True, kw_only=True)
class WalkingEvaluation(EvaluationConfig):
    """How a walking policy is evaluated: the first episodes of every environment count."""

    conditions: tuple[str, ...] = ("nominal",)
    """Any of nominal, low-friction, payload, pushes, training."""
    seeds: Seeds = (101, 102, 103)
    """Evaluation seeds."""
    envs: Annotated[int, between(1, 1_000_000)] = 100
    """Environments per seed."""
    episodes: Annotated[int, between(1, 100_000)] = 2
    """Episodes per environment, the first ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for condition in self.conditions:
            find_condition(condition)


@dataclass(frozen=True)
class WalkingFilm(Checked, section="--"):
    """What a video of a walking policy shows, with its command and measured velocity."""

    seconds: Annotated[float, between(0.01, 86_400)] = 10.0
    """Length of the video."""
    command: Annotated[tuple[float, float, float], between(-100, 100)] | Literal["random"] = (
        0.5,
        0.0,
        0.0,
    )
    """Forward and sideways velocity (m/s) and yaw rate (rad/s), or random for commands as in
    training."""
    condition: str = "nominal"
    """One of nominal, low-friction, payload, pushes, training."""
    width: Annotated[int, between(16, 8192)] = 640
    """Width in pixels."""
    height: Annotated[int, between(16, 8192)] = 480
    """Height in pixels."""
    seed: Seed = 1
    """Seed of the initial state and of random commands."""
    primitives: bool = False
    """Draw simple shapes even if a package with meshes of the robot is installed."""

    def config(self) -> VideoConfig:
        """Return what to record."""
        from prism_motor.locomotion.video import VideoConfig

        command = self.command if isinstance(self.command, tuple) else None
        return VideoConfig(
            self.seconds,
            command,
            self.condition,
            self.width,
            self.height,
            self.seed,
            self.primitives,
        )
