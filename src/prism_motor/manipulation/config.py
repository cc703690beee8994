"""Settings of a run that learns from demonstrations."""

from __future__ import annotations

from dataclasses import dataclass, field

from prism_motor._errors import InputError
from prism_motor.nn.checks import check_choice, check_size

KIND = "manipulation"
"""What ``config.json`` of such a run says it is."""


@dataclass(frozen=True)
class TaskConfig:
    """What is learned, and the sizes a policy for it has."""

    suite: str
    """The suite."""
    name: str
    """Name of the task within it."""
    state: int
    """Values of proprioception."""
    objects: int
    """Values of object poses."""
    action: int
    """Values of an action."""
    cameras: tuple[str, ...]
    """Cameras that the policy sees; none when it sees object poses."""


@dataclass(frozen=True)
class ConditionerConfig:
    """What stands in the proprioceptive pathway: the only thing in which arms differ."""

    kind: str = "prism"
    """linear (LeRobot's own, untouched), mlp or prism."""
    degree: int = 2
    """Polynomial degree of prism."""
    latent: int = 256
    """Width of prism's interaction stage."""
    interaction: str = "gated"
    """Interaction layer of prism: gated, product, ..."""
    mlp_size: str = "matched"
    """matched (as many parameters as prism) or larger."""

    def __post_init__(self) -> None:
        check_choice("conditioner", self.kind, ("linear", "mlp", "prism"))
        check_choice("conditioner.mlp_size", self.mlp_size, ("matched", "larger"))
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


@dataclass(frozen=True)
class ImitationConfig:
    """A run, enough to repeat it."""

    preset: str
    """Name of the preset that the settings came from."""
    arm: str
    """Name of the arm of a comparison."""
    task: TaskConfig
    """The task."""
    demos: str
    """Folder of the demonstrations, or their name on the hub."""
    conditioner: ConditionerConfig = field(default_factory=ConditionerConfig)
    """The arm."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """The policy around it."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    """The learner."""
    episodes: int | None = None
    """How many of the demonstrations are used; all by default."""
    batch: int = 64
    """Samples of an update."""
    steps: int = 20_000
    """Updates."""
    seed: int = 1
    """Seed of everything random."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, ..."""
    threads: int = 1
    """Threads of torch; part of what makes a run exact."""
    log_every: int = 20
    """Updates between two lines of metrics."""
    checkpoint_every: int = 10_000
    """Updates between checkpoints."""
    keep_checkpoints: int = 2
    """How many of the newest checkpoints are kept."""
    kind: str = KIND
    """Kind of the run."""

    def __post_init__(self) -> None:
        names = ("batch", "steps", "threads", "log_every", "checkpoint_every", "keep_checkpoints")
        for name in names:
            check_size("run", name, getattr(self, name))
        if self.kind != KIND:
            raise InputError(f"kind must be {KIND!r}, got {self.kind!r}.")
