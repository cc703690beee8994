"""Settings of a run that learns from demonstrations, and of its evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field

from prism_motor._checks import InputError, check_choice, check_size
from prism_motor.manipulation.rollout import find_perturbation
from prism_motor.train.config import EvaluationConfig, RunConfig


@dataclass(frozen=True)
class HandlingTask:
    """The task and the input and output sizes of its policies; 0 until read from the task."""

    suite: str = "metaworld"
    """Benchmark that the task comes from."""
    name: str = "reach-v3"
    """Name or number of the task in its suite."""
    state: int = 0
    """Size of the proprioceptive state; read from the task."""
    objects: int = 0
    """Size of the object poses; read from the task."""
    action: int = 0
    """Size of an action; read from the task."""
    cameras: tuple[str, ...] = ()
    """Cameras of the policy; none if it uses object poses. Read from the task."""


@dataclass(frozen=True)
class ConditionerConfig:
    """The proprioceptive pathway: the only difference between arms."""

    kind: str = "prism"
    """linear (LeRobot's, unmodified), mlp or prism; set by the arm."""
    degree: int = 2
    """Polynomial degree of prism."""
    latent: int = 256
    """Width of prism's interaction stage."""
    interaction: str = "gated"
    """Interaction layer of prism: gated, product, ..."""
    mlp_size: str = "matched"
    """matched (as many parameters as prism) or large; set by the arm."""

    def __post_init__(self) -> None:
        check_choice("conditioner", self.kind, ("linear", "mlp", "prism"))
        check_choice("conditioner.mlp_size", self.mlp_size, ("matched", "large"))
        for name in ("degree", "latent"):
            check_size("conditioner", name, getattr(self, name))


@dataclass(frozen=True)
class NetworkConfig:
    """Diffusion Policy, the same for every arm."""

    inputs: str = "images"
    """Input besides proprioception: images, or objects (their poses)."""
    image_size: int = 128
    """Side of the images, pixels."""
    encoder: str = "resnet18"
    """resnet18 (LeRobot's) or small (three convolutions)."""
    widths: tuple[int, ...] = (128, 256, 512)
    """Channels of the U-Net."""
    observation_steps: int = 2
    """Number of recent observations that the policy uses."""
    horizon: int = 16
    """Number of actions denoised together."""
    action_steps: int = 8
    """Number of those actions that are executed."""
    noise_steps: int = 100
    """Diffusion steps in training."""
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
    """AdamW with warm-up and cosine decay to zero."""

    learning_rate: float = 1e-4
    """Peak learning rate."""
    weight_decay: float = 1e-6
    """Weight decay; gates, biases and norms of the conditioner have none."""
    betas: tuple[float, float] = (0.95, 0.999)
    """Decay of the moments."""
    warmup: int = 500
    """Updates until the peak learning rate."""
    gradient_norm: float = 10.0
    """Gradients are clipped to this norm."""

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
    """Folder or hub name of the demonstrations; default: demos/SUITE-TASK."""
    conditioner: ConditionerConfig = field(default_factory=ConditionerConfig)
    """The arm."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """The policy around it."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    """The learner."""
    episodes: int | None = None
    """Number of demonstrations to use; default: all."""
    batch: int = 64
    """Samples per update."""
    updates: int = 20_000
    """Total number of training updates."""
    device: str = "cpu"
    """Torch device: cpu, cuda, ..."""
    log_every: int = 20
    """Updates per row of metrics."""
    checkpoint_every: int = 10_000
    """Updates between checkpoints."""
    keep_checkpoints: int = 2
    """Number of most recent checkpoints to keep."""

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
    """Number of fixed initial states per seed, from the first."""
    corrector: str = "none"
    """Correction of actions at execution time, a baseline of the paper: mcc-sensorless, mcc-oracle,
    or a compliance.json of prism compliance."""
    stiffness: float | None = None
    """Kp of LIBERO's controller; the paper uses 50. Default: LIBERO's 150."""
    linger: int = 0
    """Steps to continue after success; only traces include them."""
    videos: int = 0
    """Number of episodes to record on video, from the first, as RUN/videos/*.mp4."""
    traces: bool = False
    """Whether to write force, motion and action of every step as .npz files."""
    workers: int = 0
    """Processes that run episodes; 0: this one. After a crash, the episode is tried again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for condition in self.conditions:
            find_perturbation(condition)
        for name in ("linger", "videos", "workers"):
            if getattr(self, name) < 0:
                raise InputError(
                    f"evaluation: {name} must not be negative, got {getattr(self, name)}."
                )
