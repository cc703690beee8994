"""Settings of a run that learns from demonstrations, and of its evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field

from prism_motor._checks import InputError, check_choice, check_size
from prism_motor.manipulation.rollout import find_perturbation
from prism_motor.train.config import EvaluationConfig, RunConfig


@dataclass(frozen=True)
class HandlingTask:
    """What is learned, and the sizes that a policy for it has; 0 until the task is looked at."""

    suite: str = "metaworld"
    """Benchmark that the task comes from."""
    name: str = "reach-v3"
    """Name or number of the task in its suite."""
    state: int = 0
    """Values of proprioception; found out from the task."""
    objects: int = 0
    """Values of object poses; found out from the task."""
    action: int = 0
    """Values of an action; found out from the task."""
    cameras: tuple[str, ...] = ()
    """Cameras that the policy sees; none when it sees object poses. Found out from the task."""


@dataclass(frozen=True)
class ConditionerConfig:
    """What stands in the proprioceptive pathway: the only thing in which arms differ."""

    kind: str = "prism"
    """linear (LeRobot's own, untouched), mlp or prism; the arm decides."""
    degree: int = 2
    """Polynomial degree of prism."""
    latent: int = 256
    """Width of prism's interaction stage."""
    interaction: str = "gated"
    """Interaction layer of prism: gated, product, ..."""
    mlp_size: str = "matched"
    """matched (as many parameters as prism) or large; the arm decides."""

    def __post_init__(self) -> None:
        check_choice("conditioner", self.kind, ("linear", "mlp", "prism"))
        check_choice("conditioner.mlp_size", self.mlp_size, ("matched", "large"))
        for name in ("degree", "latent"):
            check_size("conditioner", name, getattr(self, name))


@dataclass(frozen=True)
class NetworkConfig:
    """Diffusion Policy, the same for every arm."""

    inputs: str = "images"
    """What the policy sees beside proprioception: images, or objects (their poses)."""
    image_size: int = 128
    """Side of the images, pixels."""
    encoder: str = "resnet18"
    """resnet18 (LeRobot's) or small (three convolutions)."""
    widths: tuple[int, ...] = (128, 256, 512)
    """Channels of the U-Net."""
    observation_steps: int = 2
    """Observations that the policy looks at."""
    horizon: int = 16
    """Actions that are denoised together."""
    action_steps: int = 8
    """Actions that are executed of them."""
    noise_steps: int = 100
    """Steps of the diffusion process in training."""
    inference_steps: int = 10
    """Denoising steps when acting."""

    def __post_init__(self) -> None:
        check_choice("network.inputs", self.inputs, ("images", "objects"))
        check_choice("network.encoder", self.encoder, ("resnet18", "small"))
        for name in ("image_size", "observation_steps", "horizon", "action_steps"):
            check_size("network", name, getattr(self, name))
        for name in ("noise_steps", "inference_steps"):
            check_size("network", name, getattr(self, name))
        most = self.horizon - self.observation_steps + 1
        if self.action_steps > most:
            raise InputError(
                f"network: of {self.horizon} actions, the first {self.observation_steps - 1} are "
                f"in the past; action_steps can be at most {most}, got {self.action_steps}."
            )


@dataclass(frozen=True)
class OptimiserConfig:
    """AdamW with warm-up and a cosine to zero."""

    learning_rate: float = 1e-4
    """Highest learning rate."""
    weight_decay: float = 1e-6
    """Weight decay; gates, biases and norms of the conditioner have none."""
    betas: tuple[float, float] = (0.95, 0.999)
    """Decay of the moments."""
    warmup: int = 500
    """Updates until the highest learning rate."""
    gradient_norm: float = 10.0
    """Largest norm of the gradient."""

    def __post_init__(self) -> None:
        if self.learning_rate <= 0:
            raise InputError(
                f"optimiser: learning_rate must be above zero, got {self.learning_rate}."
            )


@dataclass(frozen=True, kw_only=True)
class ManipulationConfig(RunConfig):
    """A run that learns one task from demonstrations."""

    kind: str = "manipulation"
    task: HandlingTask = field(default_factory=HandlingTask)
    """The task."""
    demos: str = ""
    """Folder of the demonstrations, or their name on the hub; default: demos/SUITE-TASK."""
    conditioner: ConditionerConfig = field(default_factory=ConditionerConfig)
    """The arm."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """The policy around it."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    """The learner."""
    episodes: int | None = None
    """How many of the demonstrations are used; default: all."""
    batch: int = 64
    """Samples per update."""
    updates: int = 20_000
    """Training updates in all."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, ..."""
    log_every: int = 20
    """Updates between two rows of metrics."""
    checkpoint_every: int = 10_000
    """Updates between checkpoints."""
    keep_checkpoints: int = 2
    """How many of the newest checkpoints are kept."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch", "log_every"):
            check_size("run", name, getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class HandlingEvaluation(EvaluationConfig):
    """How a handling policy is evaluated: one episode from each of the first initial states."""

    conditions: tuple[str, ...] = ("none",)
    """Any of none, delay, proprioception, image, combined."""
    seeds: tuple[int, ...] = (101,)
    """Evaluation seeds."""
    episodes: int = 20
    """Fixed initial states per seed, the first ones."""
    corrector: str = "none"
    """What changes actions at execution time, a baseline of the paper: mcc-sensorless, mcc-oracle,
    or a compliance.json of prism compliance."""
    stiffness: float | None = None
    """Kp of LIBERO's controller, for every arm; the paper has 50. Default: LIBERO's own, 150."""
    linger: int = 0
    """Steps to go on after success; they count in traces only."""
    videos: int = 0
    """How many of the first episodes to film, as RUN/videos/*.mp4."""
    traces: bool = False
    """Whether force, motion and action of every step are written, as .npz files."""
    workers: int = 0
    """Processes that run episodes; 0: this one. One that crashes costs its episode a second try."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for condition in self.conditions:
            find_perturbation(condition)
        for name in ("linger", "videos", "workers"):
            if getattr(self, name) < 0:
                raise InputError(
                    f"evaluation: {name} must not be negative, got {getattr(self, name)}."
                )
