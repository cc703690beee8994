"""Settings of a run that learns from demonstrations, and of its evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar

from prism_motor._checks import InputError, InputTypeError, check_choice, show
from prism_motor._ranges import Bounds, Checked, Count, Seeds, above, between, length
from prism_motor.manipulation.rollout import find_perturbation
from prism_motor.runs.configs import from_dict
from prism_motor.sim.sensing import RENDERERS
from prism_motor.train.config import EvaluationConfig, RunConfig


@dataclass(frozen=True)
class HandlingTask(Checked, section="task"):
    """What is learned, and the input and output sizes of its policies; 0 until read from it."""

    suite: str = "metaworld"
    """Benchmark that the task comes from; libero: all four suites of LIBERO."""
    name: str = "reach-v3"
    """Name or number of the task in its suite; several: 7+8; every one: all."""
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
    latent: Annotated[int | None, between(1, 8192)] = 256
    """Width of prism's interaction stage; none: that of its output."""
    interaction: str = "gated"
    """Interaction layer of prism: gated, product, ..."""
    gate_init: Annotated[float, between(-100, 100)] = 0.01
    """Initial gates of prism."""
    mlp_size: str = "matched"
    """matched (as many parameters as prism) or large; set by the arm."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("conditioner", self.kind, ("linear", "mlp", "prism"))
        check_choice("conditioner.mlp_size", self.mlp_size, ("matched", "large"))


class PolicyNetwork(Checked, section="network"):
    """The policy around the conditioner, the same for every arm; one class per backbone."""

    backbone: ClassVar[str]
    """Name of the backbone."""
    derived: ClassVar[Mapping[str, Any]] = {"drawn_size": 0}
    """Settings that are read from demonstrations or the installation, with their values before."""
    dropped: int
    """Number of last steps of an episode at which no training sample starts."""
    inputs: str
    image_size: int
    renderer: str
    drawn_size: int
    observation_steps: int
    horizon: int
    action_steps: int
    """Described where they are fields."""

    def change(self, **changes: Any) -> PolicyNetwork:
        """Return the settings with some of them replaced."""
        return replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data; those of diffusion are not named, as ever."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        plain = {key: list(v) if isinstance(v, tuple) else v for key, v in plain.items()}
        return plain if self.backbone == _UNNAMED else {"backbone": self.backbone, **plain}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> PolicyNetwork:
        """Read what :meth:`to_dict` wrote; unknown names and keys are errors."""
        from prism_motor.manipulation.backbones import BACKBONES

        if not isinstance(data, dict):
            raise InputTypeError(f"network must be a table of settings, got {show(data)}.")
        data = dict(data)
        backbone = data.pop("backbone", _UNNAMED)
        return from_dict(BACKBONES[backbone].network, data, "network")


_UNNAMED = "diffusion"
"""The backbone of settings that name none."""


@dataclass(frozen=True)
class NetworkConfig(PolicyNetwork):
    """Diffusion Policy."""

    backbone: ClassVar[str] = "diffusion"

    inputs: str = "images"
    """Input besides proprioception: images, or objects (their poses)."""
    image_size: Annotated[int, between(1, 4096)] = 128
    """Side of the images, pixels."""
    renderer: str = "fast"
    """How images are drawn in evaluations, which must be as in the demonstrations: fast (without
    shadows, reflections and multisampling), or stock (by the suite's own renderer, as in public
    demonstrations)."""
    drawn_size: Annotated[int, between(0, 4096)] = 0
    """Side of the images as they are drawn, if that is not image_size, to which they are scaled.
    Read from the demonstrations."""
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
        check_choice("network.renderer", self.renderer, RENDERERS)
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

    @property
    def dropped(self) -> int:  # type: ignore[override]
        """Number of last steps of an episode at which no training sample starts, as in LeRobot.

        More than half of the actions of such a sample would be repetitions.
        """
        return self.horizon - self.action_steps - self.observation_steps + 1


@dataclass(frozen=True)
class OptimiserConfig(Checked, section="optimiser"):
    """AdamW with warm-up and cosine decay."""

    learning_rate: Annotated[float, above(0, 100)] = 1e-4
    """Peak learning rate."""
    weight_decay: Annotated[float, between(0, 100)] = 1e-6
    """Weight decay; gates, biases and norms of the conditioner have none."""
    betas: Annotated[tuple[float, float], Bounds(0, 1, high_open=True)] = (0.95, 0.999)
    """Decay of the moments."""
    warmup: Annotated[int, between(0, 10**9)] = 500
    """Updates until the peak learning rate."""
    last_rate: Annotated[float, between(0, 100)] = 0.0
    """Learning rate at the end of the decay; always 0 with diffusion."""
    gradient_norm: Annotated[float, above(0, 1e6)] = 10.0
    """Gradients are clipped to this norm."""


@dataclass(frozen=True, kw_only=True)
class ManipulationConfig(RunConfig):
    """A run that learns from demonstrations."""

    kind: str = "manipulation"
    task: HandlingTask = field(default_factory=HandlingTask)
    """The task."""
    demos: str = ""
    """Folder or hub name of the demonstrations; default: demos/SUITE-TASK. Of several tasks: a
    dataset of all, or the folder of one dataset SUITE-TASK each; default: demos."""
    conditioner: ConditionerConfig = field(default_factory=ConditionerConfig)
    """The arm."""
    network: PolicyNetwork = field(default_factory=NetworkConfig)
    """The policy around it."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    """The learner."""
    episodes: Count | None = None
    """Number of demonstrations to use per task; default: all."""
    random_shift: Annotated[int, between(0, 64)] = 0
    """Training images are shifted by up to this many pixels at random, with their edges repeated;
    0: not at all."""
    batch: Annotated[int, between(1, 1_000_000)] = 64
    """Samples per update."""
    updates: Count = 20_000
    """Total number of training updates."""
    log_every: Count = 20
    """Updates per row of metrics."""
    checkpoint_every: Count = 10_000
    """Updates between checkpoints."""
    keep_checkpoints: Count = 2
    """Number of most recent checkpoints to keep."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.demos.isprintable():
            raise InputError(f"demos must be a folder or a name, got {show(self.demos)}.")

    @property
    def backbone(self) -> str:
        """Name of the policy around the conditioner."""
        return self.network.backbone


@dataclass(frozen=True, kw_only=True)
class HandlingEvaluation(EvaluationConfig):
    """How a handling policy is evaluated: one episode from each of the first initial states.

    Of every task, if it learned several.
    """

    conditions: tuple[str, ...] = ("none",)
    """Any of none, delay, proprioception, image, combined."""
    seeds: Seeds = (101,)
    """Evaluation seeds."""
    episodes: Annotated[int, between(1, 100_000)] = 20
    """Number of fixed initial states per seed and task, from the first; policies of the preset
    paper: 10, of smolvla-paper: 50."""
    tasks: tuple[str, ...] = ()
    """Some of the tasks that the policy learned, as SUITE/NUMBER: libero_goal/7; default: all."""
    corrector: str = "none"
    """Correction of actions at execution time, a baseline of the paper: mcc-sensorless, mcc-oracle,
    or a compliance.json of prism compliance."""
    stiffness: Annotated[float | None, above(0, 1e5)] = None
    """Kp of LIBERO's controller; the paper uses 50. Default: LIBERO's 150. Of the SO-101: that of
    its servos, N m/rad."""
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
