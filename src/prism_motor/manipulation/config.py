"""Settings of a run that learns from demonstrations, and of its evaluation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated

from prism_motor._checks import InputError, check_choice, show
from prism_motor._ranges import Bounds, Checked, Count, Seeds, above, between, length
from prism_motor.manipulation.rollout import find_perturbation
from prism_motor.train.config import EvaluationConfig, RunConfig


@dataclass(frozen=True)
class HandlingTask(Checked, section="task"):
    """The task and the input and output sizes of its policies; 0 until read from the task."""

    suite: str = "metaworld"
    """Benchmark that the task comes from."""
    name: str = "reach-v3"
    """Name or number of the task in its suite."""
    state: Annotated[int, between(0, 100_000)] = 0
    """Size of the proprioceptive state; read from the task."""
    objects: Annotated[int, between(0, 100_000)] = 0
    """Size of the object poses; read from the task."""
    action: Annotated[int, between(0, 100_000)] = 0
    """Size of an action; read from the task."""
    cameras: tuple[str, ...] = ()
    """Cameras of the policy; none if it uses object poses. Read from the task."""


@dataclass(frozen=True)
class ConditionerConfig(Checked, section="conditioner"):
    """The proprioceptive pathway: the only difference between arms."""

    kind: str = "prism"
    """linear (LeRobot's, unmodified), mlp or prism; set by the arm."""
    degree: Annotated[int, between(1, 64)] = 2
    """Polynomial degree of prism."""
    latent: Annotated[int, between(1, 8192)] = 256
    """Width of prism's interaction stage."""
    interaction: str = "gated"
    """Interaction layer of prism: gated, product, ..."""
    mlp_size: str = "matched"
    """matched (as many parameters as prism) or large; set by the arm."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("conditioner", self.kind, ("linear", "mlp", "prism"))
        check_choice("conditioner.mlp_size", self.mlp_size, ("matched", "large"))


@dataclass(frozen=True)
class NetworkConfig(Checked, section="network"):
    """Diffusion Policy, the same for every arm."""

    inputs: str = "images"
    """Input besides proprioception: images, or objects (their poses)."""
    image_size: Annotated[int, between(1, 4096)] = 128
    """Side of the images, pixels."""
    encoder: str = "resnet18"
    """resnet18 (LeRobot's) or small (three convolutions)."""
    widths: Annotated[tuple[int, ...], between(1, 8192), length(1, 16)] = (128, 256, 512)
    """Channels of the U-Net."""
    observation_steps: Annotated[int, between(1, 1000)] = 2
    """Number of recent observations that the policy uses."""
    horizon: Annotated[int, between(1, 10_000)] = 16
    """Number of actions denoised together."""
    action_steps: Annotated[int, between(1, 10_000)] = 8
    """Number of those actions that are executed."""
    noise_steps: Annotated[int, between(1, 100_000)] = 100
    """Diffusion steps in training."""
    inference_steps: Annotated[int, between(1, 100_000)] = 10
    """Denoising steps when acting."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("network.inputs", self.inputs, ("images", "objects"))
        check_choice("network.encoder", self.encoder, ("resnet18", "small"))
        if any(width % 8 for width in self.widths):
            raise InputError(
                f"network.widths must be multiples of 8, the groups of its norms, got "
                f"{list(self.widths)}."
            )
        if self.inference_steps > self.noise_steps:
            raise InputError(
                f"network.inference_steps must be at most noise_steps ({self.noise_steps}), got "
                f"{self.inference_steps}."
            )
        most = self.horizon - self.observation_steps + 1
        if self.action_steps > most:
            raise InputError(
                f"network: of {self.horizon} actions, the first {self.observation_steps - 1} are "
                f"in the past; action_steps can be at most {most}, got {self.action_steps}."
            )


@dataclass(frozen=True)
class OptimiserConfig(Checked, section="optimiser"):
    """AdamW with warm-up and cosine decay to zero."""

    learning_rate: Annotated[float, above(0, 100)] = 1e-4
    """Peak learning rate."""
    weight_decay: Annotated[float, between(0, 100)] = 1e-6
    """Weight decay; gates, biases and norms of the conditioner have none."""
    betas: Annotated[tuple[float, float], Bounds(0, 1, high_open=True)] = (0.95, 0.999)
    """Decay of the moments."""
    warmup: Annotated[int, between(0, 10**9)] = 500
    """Updates until the peak learning rate."""
    gradient_norm: Annotated[float, above(0, 1e6)] = 10.0
    """Gradients are clipped to this norm."""


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
    episodes: Count | None = None
    """Number of demonstrations to use; default: all."""
    batch: Annotated[int, between(1, 1_000_000)] = 64
    """Samples per update."""
    updates: Count = 20_000
    """Total number of training updates."""
    device: str = "cpu"
    """Torch device: cpu, cuda, ..."""
    log_every: Count = 20
    """Updates per row of metrics."""
    checkpoint_every: Count = 10_000
    """Updates between checkpoints."""
    keep_checkpoints: Count = 2
    """Number of most recent checkpoints to keep."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"(cpu|cuda|mps|xpu)(:[0-9]{1,3})?", self.device):
            raise InputError(f"device must be like cpu, cuda or cuda:1, got {show(self.device)}.")
        if not self.demos.isprintable():
            raise InputError(f"demos must be a folder or a name, got {show(self.demos)}.")


@dataclass(frozen=True, kw_only=True)
class HandlingEvaluation(EvaluationConfig):
    """How a handling policy is evaluated: one episode from each of the first initial states."""

    conditions: tuple[str, ...] = ("none",)
    """Any of none, delay, proprioception, image, combined."""
    seeds: Seeds = (101,)
    """Evaluation seeds."""
    episodes: Annotated[int, between(1, 100_000)] = 20
    """Number of fixed initial states per seed, from the first."""
    corrector: str = "none"
    """Correction of actions at execution time, a baseline of the paper: mcc-sensorless, mcc-oracle,
    or a compliance.json of prism compliance."""
    stiffness: Annotated[float | None, above(0, 1e5)] = None
    """Kp of LIBERO's controller; the paper uses 50. Default: LIBERO's 150."""
    linger: Annotated[int, between(0, 100_000)] = 0
    """Steps to continue after success; only traces include them."""
    videos: Annotated[int, between(0, 100_000)] = 0
    """Number of episodes to record on video, from the first, as RUN/videos/*.mp4."""
    traces: bool = False
    """Whether to write force, motion and action of every step as .npz files."""
    workers: Annotated[int, between(0, 1024)] = 0
    """Processes that run episodes; 0: this one. After a crash, the episode is tried again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for condition in self.conditions:
            find_perturbation(condition)
