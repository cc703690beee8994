"""Settings of a tracking run: networks, latents, losses, warm start, replay; and of evaluations."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from prism_motor._checks import InputError, check_choice
from prism_motor._ranges import Bounds, Checked, above, between
from prism_motor.sim.engines import ContactRoom, EngineName
from prism_motor.tracking.task import TrackingTask
from prism_motor.train.config import EvaluationConfig, RunConfig

_Width = Annotated[int, between(2, 65_536)]
_Depth = Annotated[int, between(1, 64)]
_Rate = Annotated[float, above(0, 1)]
_Weight = Annotated[float, between(0, 1e6)]
_Penalty = Annotated[float, between(-1e6, 1e6)]
_Share = Annotated[float, between(0, 1)]


@dataclass(frozen=True)
class TrackingNetworkConfig(Checked, section="networks"):
    """Sizes of the networks; one filter of the history per network that sees it."""

    blocks: Literal["residual", "simple"] = "residual"
    """``residual``: LayerNorm, Linear, Mish, added to the input; ``simple``: Linear, ReLU."""
    width: _Width = 2048
    """Width of actor, forward map and critics; embeddings end at half of it."""
    layers: _Depth = 6
    """Layers between the embeddings and the head."""
    actor_embedding: Annotated[int, between(2, 64)] = 2
    """Layers of the actor's two embeddings."""
    critic_embedding: Annotated[int, between(2, 64)] = 6
    """Layers of the two embeddings of forward map and critics."""
    latent: Annotated[int, between(2, 4096)] = 256
    """Size of the latent space."""
    backward_width: _Width = 256
    """Hidden width of the backward map."""
    discriminator_width: _Width = 1024
    """Hidden width of the discriminator."""
    discriminator_layers: _Depth = 3
    """Hidden layers of the discriminator."""
    critic_history: bool = True
    """Whether forward map and critics see the history; without it they see the rest."""
    filter: Literal["none", "prism", "mlp"] = "none"
    """What the history passes: nothing, the polynomial, or an MLP with its parameters."""
    filter_degree: Annotated[int, between(1, 8)] = 2
    """Degree of the polynomial, and of the one that the MLP is matched to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % 2:
            raise InputError(
                f"networks.width must be even, got {self.width}: each of two embeddings gives half."
            )


@dataclass(frozen=True)
class LatentConfig(Checked, section="latents"):
    """Where latents come from, in updates and in rollouts."""

    goal: _Share = 0.2
    """Share of an update's new latents that are goals: the backward map of a successor."""
    expert: _Share = 0.6
    """Share of them that are those of expert windows; the rest is random."""
    relabel: _Share = 0.8
    """Probability that a transition is learned under a new latent, not the one acted under."""
    ring: Annotated[int, between(1, 10**7)] = 8192
    """Latents kept for rollouts."""
    switch_every: Annotated[int, between(1, 100_000)] = 100
    """Steps of an episode after which a rollout gets another latent."""
    follow: _Share = 0.5
    """Draws of rollouts that follow a clip, per environment, with replacement."""
    follow_steps: Annotated[int, between(1, 100_000)] = 250
    """Steps that they follow it; then all are drawn anew."""
    window: Annotated[int, between(1, 1000)] = 8
    """Frames whose mean makes an expert latent."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.goal + self.expert > 1 + 1e-9:
            raise InputError(
                f"latents.goal and latents.expert are shares of one whole, but {self.goal} and "
                f"{self.expert} are more than 1 together."
            )


@dataclass(frozen=True)
class DiscriminatorConfig(Checked, section="discriminator"):
    """The discriminator and the reward it gives.

    A discriminator that wins early gives the same large penalty everywhere, and its critic runs
    away. What holds it back: a smaller rate, fewer steps, a larger gradient penalty, and a reward
    that is bounded, with targets bounded alike.
    """

    learning_rate: _Rate = 1e-5
    """Its learning rate."""
    every: Annotated[int, between(1, 10_000)] = 1
    """Updates per step of the discriminator."""
    gradient_penalty: _Weight = 10.0
    """Weight of the squared deviation of its gradient's norm from one."""
    reward: Literal["log-odds", "softplus"] = "log-odds"
    """``log-odds``: log p/(1-p), signed; ``softplus``: -log(1-p), never negative."""
    reward_bound: Annotated[float, above(0, 16.2)] = 16.118
    """Largest absolute log-odds that count; 16.118 is a probability of 1e-7."""
    normalise_reward: bool = False
    """Whether the reward is divided by its running standard deviation."""
    bounded_targets: bool = False
    """Whether targets of its critic are clamped to what the bounded reward can sum up to."""


@dataclass(frozen=True)
class WarmStartConfig(Checked, section="warm_start"):
    """Teaches the actor to follow the clips before the learner takes over; not in the paper.

    First the backward map is made orthonormal, then the actor imitates drives that aim at the next
    frame, then it learns to keep its balance by PPO with a tracking reward, under the
    latents that prompt the clips. Its data fill the replay buffer.
    """

    updates: Annotated[int, between(0, 10**9)] = 0
    """Updates of PPO; 0: no warm start at all."""
    tumbling_steps: Annotated[int, between(0, 100_000)] = 50
    """Control steps of drives that aim ahead, whose states join those of the clips."""
    spreading_steps: Annotated[int, between(0, 10**7)] = 2000
    """Gradient steps of the backward map on its orthonormality over these states."""
    cloning_steps: Annotated[int, between(0, 10**7)] = 600
    """Gradient steps of the actor towards the next frames."""
    hold: _Share = 0.2
    """Share of episodes that hold the frame they begin in, under the latent of that pose at rest;
    the others follow the clip."""
    steps: Annotated[int, between(2, 10_000)] = 24
    """Control steps of every environment per update."""
    epochs: Annotated[int, between(1, 100)] = 2
    """Passes over the samples of an update."""
    minibatches: Annotated[int, between(1, 10_000)] = 4
    """Gradient steps per pass."""
    learning_rate: _Rate = 1e-4
    """Initial learning rate; it follows the divergence."""
    desired_kl: Annotated[float, above(0, 100)] = 0.01
    """Divergence between updates that the learning rate aims at."""
    gamma: Annotated[float, Bounds(0, 1, low_open=True, high_open=True)] = 0.97
    """Discount."""
    gae_lambda: Annotated[float, above(0, 1)] = 0.95
    """Advantage smoothing."""
    clip: Annotated[float, above(0, 10)] = 0.2
    """Clip range of the probability ratio."""
    exploration: Annotated[float, above(0, 3)] = 0.1
    """Initial standard deviation of the drives' targets, rad."""
    least_exploration: Annotated[float, between(0, 3)] = 0.0
    """Standard deviation that it never falls below, rad: clips that are hard need it for longer."""
    critic_width: _Width = 256
    """Width of the two hidden layers of its critic."""


@dataclass(frozen=True)
class AnchorConfig(Checked, section="anchor"):
    """Holds the actor at its warm start under latents of clips and under those it acted under.

    Without it the warm start is forgotten while the critics are wrong; it holds, then fades.
    """

    weight: _Weight = 0.0
    """Weight at the start, in units of the mean absolute forward-backward value; 0: off."""
    hold: Annotated[int, between(0, 10**9)] = 0
    """Gradient steps with this weight."""
    fade: Annotated[int, between(1, 10**9)] = 10_000
    """Gradient steps after these over which it falls to the final weight."""
    final: _Weight = 0.0
    """Weight that remains."""

    def weight_at(self, step: int) -> float:
        """Return the weight of a gradient step."""
        done = min(1.0, max(0.0, (step - self.hold) / self.fade))
        return self.weight + (self.final - self.weight) * done

    @property
    def used(self) -> bool:
        """Whether it ever has a weight."""
        return self.weight > 0 or self.final > 0


@dataclass(frozen=True)
class LearnerConfig(Checked, section="learner"):
    """One update of forward-backward representations with conditional policy regularisation."""

    batch: Annotated[int, between(2, 1_000_000)] = 1024
    """Transitions, and expert frames, per update."""
    sweeps: Annotated[int, between(1, 100_000)] = 25
    """Control steps of all environments per update."""
    gradient_steps: Annotated[float, above(0, 1000)] = 16.0
    """Gradient steps per control step of all environments; 0.5 is one every other control step."""
    actor_delay: Annotated[int, between(0, 10**9)] = 0
    """Gradient steps of the other networks before the actor's first."""
    warmup_steps: Annotated[int, between(0, 10**9)] = 10_240
    """Environment steps of uniform actions before the first update."""
    gamma: Annotated[float, Bounds(0, 1, low_open=True, high_open=True)] = 0.98
    """Discount; falls and time-outs do not change it."""
    statistics: _Share = 0.01
    """Share of a batch in the running statistics of observations; 0: they stay as the warm start
    left them."""
    learning_rate: _Rate = 3e-4
    """Learning rate of actor, forward map and critics."""
    backward_rate: Annotated[float, between(0, 1)] = 1e-5
    """Learning rate of the backward map; 0: latents keep the meaning of the warm start."""
    forward_tau: Annotated[float, above(0, 1)] = 0.01
    """Share of the networks that enters the targets of forward and backward map per update."""
    critic_tau: Annotated[float, above(0, 1)] = 0.005
    """The same for the critics' targets."""
    orthonormality: _Weight = 100.0
    """Weight of the backward map's orthonormality."""
    pessimism: Annotated[float, between(0, 10)] = 0.5
    """Share of the gap between two members that is taken off, in critics' targets and the actor."""
    imitation_weight: _Weight = 0.05
    """Weight of the discriminator's critic in the actor's loss."""
    auxiliary_weight: _Weight = 0.02
    """Weight of the auxiliary critic in the actor's loss; 0 leaves that critic out."""
    action_std: Annotated[float, above(0, 10)] = 0.05
    """Standard deviation of the actor's noise."""
    action_noise_clip: Annotated[float, above(0, 10)] = 0.3
    """Largest noise in updates."""

    def steps_due(self, sweep: int) -> int:
        """Return how many gradient steps follow a control step of all, counted from 1."""
        return int(sweep * self.gradient_steps) - int((sweep - 1) * self.gradient_steps)


@dataclass(frozen=True)
class AuxiliaryConfig(Checked, section="auxiliary"):
    """Weights of what a step is punished for; the buffer has the raw terms in this order."""

    action_rate: _Penalty = -0.1
    """Sum of the squared changes of five times the action."""
    feet_orientation: _Penalty = -0.4
    """Tilt of feet that carry weight: horizontal part of gravity in the foot's axes."""
    ankle_roll: _Penalty = -4.0
    """Sum of the squared ankle roll angles."""
    joint_limit: _Penalty = -10.0
    """Sum of what joints are beyond 0.95 of their range."""
    slippage: _Penalty = -2.0
    """Sum of the speeds of feet in contact."""
    undesired_contact: _Penalty = -1.0
    """One if pelvis, a hip or a shoulder touches something."""

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights in order."""
        return tuple(getattr(self, one.name) for one in fields(self))


@dataclass(frozen=True)
class ReplayConfig(Checked, section="replay"):
    """The replay buffer."""

    rows: Annotated[int, between(2, 10**8)] = 5000
    """Steps of every environment that are kept."""
    place: Literal["host", "device"] = "host"
    """Where it is: in the machine's memory, or on the device of the networks."""
    segment_rows: Annotated[int, between(1, 10**6)] = 50
    """Steps per file on disk; a checkpoint holds fewer than these itself."""


@dataclass(frozen=True, kw_only=True)
class LearningSettings(Checked, section=""):
    """Everything about learning that a preset fixes."""

    networks: TrackingNetworkConfig = field(default_factory=TrackingNetworkConfig)
    """The networks."""
    latents: LatentConfig = field(default_factory=LatentConfig)
    """The latents."""
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    """The discriminator."""
    warm_start: WarmStartConfig = field(default_factory=WarmStartConfig)
    """The warm start."""
    anchor: AnchorConfig = field(default_factory=AnchorConfig)
    """What holds the actor at its warm start."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """The learner."""
    auxiliary: AuxiliaryConfig = field(default_factory=AuxiliaryConfig)
    """The auxiliary reward."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """The replay buffer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learner.batch % self.latents.window:
            raise InputError(
                f"learner.batch must be a multiple of latents.window, {self.latents.window}: "
                f"expert frames come in windows of it; got {self.learner.batch}."
            )
        if self.anchor.used and not self.warm_start.updates:
            raise InputError(
                "anchor.weight holds the actor at its warm start, but warm_start.updates is 0. Set "
                "anchor.weight and anchor.final to 0, or give warm_start.updates."
            )


@dataclass(frozen=True, kw_only=True)
class TrackingConfig(RunConfig, LearningSettings):
    """A run that learns to track motions."""

    kind: str = "tracking"
    task: TrackingTask = field(default_factory=TrackingTask)
    """The task."""
    envs: Annotated[int, between(1, 1_000_000)] = 512
    """Environments stepped at once."""
    engine: EngineName = "cpu"
    """What steps the robots: cpu, MuJoCo; gpu, MuJoCo Warp on the device (extra gpu); auto: gpu on
    cuda where it is installed."""
    contacts: ContactRoom = 0
    """Room for contacts per robot in the gpu engine; 0: as many as its geometry can need."""
    prioritise_every: Annotated[int, between(0, 10**9)] = 0
    """Updates between evaluations by which clips are drawn more often; 0: all alike."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.updates <= self.warm_start.updates and self.warm_start.updates:
            raise InputError(
                f"updates is {self.updates}, but the warm start alone has "
                f"{self.warm_start.updates}; give more updates, or a shorter warm start."
            )
        samples = self.warm_start.steps * self.envs
        if self.warm_start.updates and samples < self.warm_start.minibatches:
            raise InputError(
                f"warm_start.minibatches is {self.warm_start.minibatches}, but an update has only "
                f"{samples} samples."
            )

    def samples_at(self, update: int) -> int:
        """Return the control steps of all environments after an update."""
        warm = min(update, self.warm_start.updates)
        rest = update - warm
        return self.envs * (warm * self.warm_start.steps + rest * self.learner.sweeps)


@dataclass(frozen=True, kw_only=True)
class TrackingEvaluation(EvaluationConfig):
    """How a tracking policy is evaluated: on pieces of clips, from the first frame of each."""

    conditions: tuple[str, ...] = ("nominal",)
    """Any of nominal, low-friction, payload, training."""
    envs: Annotated[int, between(1, 100_000)] = 128
    """Pieces that are run at the same time; it does not change the result."""
    clips: tuple[str, ...] = ()
    """Clips to track: names of shipped ones, files, or folders; default: those of the training."""
    piece: Annotated[float, above(0, 10_000)] = 10.0
    """Longest piece that a clip is cut into, s."""
    window: Annotated[int, between(1, 1000)] | None = None
    """Coming frames whose mean latent prompts a step; default: as the policy was trained."""

    def __post_init__(self) -> None:
        super().__post_init__()
        from prism_motor.tracking.conditions import CONDITIONS

        for condition in self.conditions:
            check_choice("condition", condition, CONDITIONS)
