"""Settings of a run on one of Gymnasium's MuJoCo environments: task, learner, evaluation."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar

from prism_motor._checks import InputError, InputTypeError, check_choice, show
from prism_motor._ranges import Checked, Count, Seeds, above, between, form, length
from prism_motor.nn import ActorConfig
from prism_motor.runs.configs import from_dict
from prism_motor.train.config import EvaluationConfig, RunConfig

_Rate = Annotated[float, above(0, 1)]
_Share = Annotated[float, above(0, 1)]
_Weight = Annotated[float, between(0, 1000)]
_Steps = Annotated[int, between(1, 1_000_000)]


@dataclass(frozen=True)
class ControlTask(Checked, section="task"):
    """An environment of Gymnasium."""

    env: Annotated[str, form(r"[\w:./-]{1,100}", "the id of an environment, e.g. Hopper-v5")] = (
        "Hopper-v5"
    )
    """Id of an environment that MuJoCo simulates. Those of the zoo have their own settings."""
    observations: Annotated[int, between(0, 1_000_000)] = 0
    """Numbers that it shows; filled in when a run starts."""
    actions: Annotated[int, between(0, 1_000_000)] = 0
    """Numbers that it takes; filled in when a run starts."""


@dataclass(frozen=True, kw_only=True)
class LearnerConfig(Checked, section="learner"):
    """What the algorithms of Stable-Baselines3 share."""

    name: ClassVar[str] = ""

    learning_rate: _Rate = 3e-4
    """Learning rate of the zoo, constant."""
    rate_factor: Annotated[float, above(0, 1000)] = 1.0
    """The learning rate is multiplied by this: what tuning changes, alike in all environments."""
    gamma: _Share = 0.99
    """Discount."""
    steps: _Steps = 1000
    """Steps of every environment per update."""
    batch: Annotated[int, between(2, 1_000_000)] = 256
    """Samples per gradient step."""

    @property
    def rate(self) -> float:
        """The learning rate that is used."""
        return self.learning_rate * self.rate_factor

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, with the name of the algorithm."""
        return {"name": self.name, **asdict(self)}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> LearnerConfig:
        """Read what :meth:`to_dict` wrote; unknown names and keys are errors."""
        if not isinstance(data, dict):
            raise InputTypeError(f"learner must be a table of settings, got {show(data)}.")
        options = dict(data)
        kind = LEARNERS[check_choice("algorithm", options.pop("name", ""), LEARNERS)]
        return from_dict(kind, options, "learner")


@dataclass(frozen=True, kw_only=True)
class PPOSettings(LearnerConfig):
    """Proximal policy optimisation, as Stable-Baselines3 implements it, with its defaults."""

    name: ClassVar[str] = "ppo"

    steps: _Steps = 2048
    """Steps of every environment per update."""
    batch: Annotated[int, between(2, 1_000_000)] = 64
    """Samples per gradient step."""
    epochs: Annotated[int, between(1, 1000)] = 10
    """Passes over the samples of an update."""
    gae_lambda: _Share = 0.95
    """Advantage smoothing."""
    clip: Annotated[float, above(0, 10)] = 0.2
    """Clip range of the probability ratio."""
    entropy_weight: _Weight = 0.0
    """Weight of the entropy bonus."""
    value_weight: _Weight = 0.5
    """Weight of the value loss."""
    gradient_norm: Annotated[float, above(0, 1e6)] = 0.5
    """Largest norm of all gradients together."""
    log_std: Annotated[float, between(-20, 2)] = 0.0
    """Initial logarithm of the actions' standard deviation."""
    orthogonal: bool = True
    """Whether linear layers start orthogonal; products keep their own initialisation."""
    normalise: bool = True
    """Whether running statistics normalise observations and rewards (VecNormalize)."""


@dataclass(frozen=True, kw_only=True)
class SACSettings(LearnerConfig):
    """Soft actor-critic, as Stable-Baselines3 implements it, with its defaults.

    After every step of the environments there is one gradient step.
    """

    name: ClassVar[str] = "sac"

    steps: _Steps = 1000
    """Steps of every environment that are one update of the run: it logs and saves after them."""
    buffer: Annotated[int, between(1, 10**9)] = 1_000_000
    """Samples of the replay buffer."""
    learning_starts: Annotated[int, between(0, 10**9)] = 100
    """Samples of random actions before learning starts."""
    tau: _Share = 0.005
    """Share by which target critics follow, per gradient step."""
    segment_rows: Annotated[int, between(1, 10**9)] = 10_000
    """Rows of the replay buffer per file of the run folder."""


LEARNERS: dict[str, type[LearnerConfig]] = {one.name: one for one in (PPOSettings, SACSettings)}
"""Settings of the algorithms by name."""


@dataclass(frozen=True, kw_only=True)
class ControlConfig(RunConfig):
    """A run of Stable-Baselines3 on one of Gymnasium's MuJoCo environments."""

    kind: str = "gymnasium"
    task: ControlTask = field(default_factory=ControlTask)
    """The environment."""
    learner: LearnerConfig
    """The algorithm."""
    actor: ActorConfig
    """The policy network; a plain MLP is Stable-Baselines3's own."""
    critic_hidden: Annotated[tuple[int, ...], between(1, 8192), length(1, 16)] = (256, 256)
    """Hidden widths of the critics, the same for every arm."""
    envs: Annotated[int, between(1, 1000)] = 1
    """Environments, stepped one after the other."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.precision != "fp32":
            raise InputError(
                f"precision: Stable-Baselines3 learns with fp32, got {self.precision}. Remove it."
            )
        if not self.actor.hidden:
            raise InputError("actor: hidden needs at least one width, e.g. --actor.hidden 256 256.")
        learner = self.learner
        if isinstance(learner, PPOSettings) and self.samples_per_update < 2:
            raise InputError("learner.steps: an update of PPO needs at least two samples.")

    @property
    def algorithm(self) -> str:
        """Name of the algorithm."""
        return self.learner.name

    @property
    def samples_per_update(self) -> int:
        """Steps of all environments in an update."""
        return self.envs * self.learner.steps

    def updates_of(self, samples: float) -> int:
        """Return the updates in which at least so many samples are seen."""
        return max(1, math.ceil(samples / self.samples_per_update))


@dataclass(frozen=True, kw_only=True)
class ControlEvaluation(EvaluationConfig):
    """How a policy is evaluated: whole episodes, each from a start of its own, without noise."""

    seeds: Seeds = (101, 102, 103)
    """Evaluation seeds; episode N of seed S starts from Gymnasium's seed 1000 S + N."""
    episodes: Count = 10
    """Episodes per seed."""
