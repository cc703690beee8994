"""Settings of the tracking learner: networks, latents, losses, replay."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from prism_motor._checks import InputError
from prism_motor._ranges import Bounds, Checked, above, between

_Width = Annotated[int, between(2, 65_536)]
_Depth = Annotated[int, between(1, 64)]
_Rate = Annotated[float, above(0, 1)]
_Weight = Annotated[float, between(0, 1e6)]
_Penalty = Annotated[float, between(-1e6, 1e6)]
_Share = Annotated[float, between(0, 1)]


@dataclass(frozen=True)
class NetworkConfig(Checked, section="networks"):
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
class CloningConfig(Checked, section="cloning"):
    """Regression of the actor on the clips: the next frame's angles as target of the drives.

    A warm start that would be forgotten while the critics are wrong; it holds, then fades.
    """

    weight: _Weight = 0.0
    """Weight at the start, in units of the mean absolute forward-backward value; 0: off."""
    hold: Annotated[int, between(0, 10**9)] = 0
    """Updates with this weight."""
    fade: Annotated[int, between(1, 10**9)] = 10_000
    """Updates after these over which it falls to the final weight."""
    final: _Weight = 0.0
    """Weight that remains."""

    def weight_at(self, update: int) -> float:
        """Return the weight of an update."""
        done = min(1.0, max(0.0, (update - self.hold) / self.fade))
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
    updates_per_sweep: Annotated[float, above(0, 1000)] = 16.0
    """Updates per control step of all environments; 0.5 is one update every other step."""
    warmup_steps: Annotated[int, between(0, 10**9)] = 10_240
    """Environment steps of uniform actions before the first update."""
    gamma: Annotated[float, Bounds(0, 1, low_open=True, high_open=True)] = 0.98
    """Discount; falls and time-outs do not change it."""
    learning_rate: _Rate = 3e-4
    """Learning rate of actor, forward map and critics."""
    backward_rate: _Rate = 1e-5
    """Learning rate of the backward map."""
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

    def updates_due(self, sweep: int) -> int:
        """Return how many updates follow a sweep, counted from 1."""
        return int(sweep * self.updates_per_sweep) - int((sweep - 1) * self.updates_per_sweep)


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
class TrackingSettings(Checked, section="tracking"):
    """Everything about learning that a preset fixes."""

    networks: NetworkConfig = field(default_factory=NetworkConfig)
    """The networks."""
    latents: LatentConfig = field(default_factory=LatentConfig)
    """The latents."""
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    """The discriminator."""
    cloning: CloningConfig = field(default_factory=CloningConfig)
    """The warm start."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """The learner."""
    auxiliary: AuxiliaryConfig = field(default_factory=AuxiliaryConfig)
    """The auxiliary reward."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """The replay buffer."""
    compact: bool = False
    """Whether the privileged state has eleven key bodies instead of 31."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learner.batch % self.latents.window:
            raise InputError(
                f"learner.batch must be a multiple of latents.window, {self.latents.window}: "
                f"expert frames come in windows of it; got {self.learner.batch}."
            )
