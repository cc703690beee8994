"""Settings of tasks: one frozen dataclass per part, checked on creation."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any

from prism_motor._checks import InputError, check_choice, show
from prism_motor._ranges import Checked, above, between, length
from prism_motor._registry import Registry
from prism_motor.sim.scene import SOLVER, SolverVersion

Range = tuple[float, float]

Number = Annotated[int, between(0, 1000)]
"""Number of a joint or of a foot, from 0."""

Part = Annotated[int, between(0, 2)]
"""Part of a command: 0 forward, 1 sideways, 2 yaw rate."""


@dataclass(frozen=True)
class SimulationConfig(Checked, section="task.simulation"):
    """Physics and control rate."""

    timestep: Annotated[float, between(1e-5, 0.1)] = 0.001
    """Physics step, s."""
    substeps: Annotated[int, between(1, 1000)] = 10
    """Physics steps per control step."""
    solver: SolverVersion = SOLVER
    """Version of the contact solver: 1, at most 5 iterations of 8 line searches, as in runs from
    before this setting; 2, at most 20 of 20, which converges."""

    @property
    def control_dt(self) -> float:
        """Control step, s."""
        return self.timestep * self.substeps


@dataclass(frozen=True)
class CommandConfig(Checked, section="task.commands"):
    """Velocity commands."""

    forward: Annotated[Range, between(-20, 20)] = (-0.3, 0.6)
    """Forward velocity, m/s."""
    sideways: Annotated[Range, between(-20, 20)] = (-0.3, 0.3)
    """Velocity to the left, m/s."""
    yaw: str = "heading"
    """Where the yaw-rate command comes from: ``heading``, it turns to a drawn heading as in
    Humanoid-Gym; ``rate``, it is drawn itself, as in the paper's Table 6."""
    yaw_rate: Annotated[Range, between(-20, 20)] = (-0.3, 0.3)
    """Yaw rate (``yaw="rate"`` only), rad/s."""
    heading: Annotated[Range, between(-10, 10)] = (-3.14, 3.14)
    """Target heading (``yaw="heading"`` only), rad."""
    heading_gain: Annotated[float, between(0, 100)] = 0.5
    """Yaw rate per heading error, 1/s."""
    yaw_limit: Annotated[float, between(0, 100)] = 1.0
    """Largest yaw-rate command that follows from a heading, rad/s."""
    deadband: Annotated[float, between(0, 100)] = 0.2
    """Planar commands up to this norm become zero, m/s."""
    resample_after: Annotated[float, above(0, 1e6)] = 8.0
    """Time between new commands, s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("task.commands.yaw", self.yaw, ("heading", "rate"))
        _check_ordered(self, "forward", "sideways", "yaw_rate", "heading")

    @property
    def turn_limit(self) -> float:
        """Largest yaw rate that is commanded, rad/s."""
        return self.yaw_limit if self.yaw == "heading" else max(map(abs, self.yaw_rate))


@dataclass(frozen=True)
class GaitConfig(Checked, section="task.gait"):
    """Gait clock and reference motion."""

    cycle: Annotated[float, between(0.01, 100)] = 0.64
    """Duration of one gait cycle, s."""
    double_support: Annotated[float, between(0, 1)] = 0.1
    """All feet are in stance while |sin(phase)| is below this."""
    offsets: Annotated[tuple[float, ...], between(-1, 1), length(1, 64)] = (0.0, 0.5)
    """Phase of each foot as a fraction of the cycle."""
    amplitude: Annotated[float, between(-10, 10)] = 0.316
    """Size of the reference motion, rad."""
    swing: tuple[tuple[Number, Number, Annotated[float, between(-100, 100)]], ...] = ()
    """Reference motion: (joint, foot, factor) adds factor * amplitude * swing of that foot."""
    stride: tuple[tuple[Number, Number, Part, Annotated[float, between(-100, 100)]], ...] = ()
    """Stride of the reference motion: (joint, foot, part, factor) adds factor * part of the command
    * reach of that foot. The reach falls evenly from cycle / 4 to -cycle / 4 (s) in stance and
    rises again in swing: where a foot is that stays on the ground while the base moves as
    commanded. Without any, the reference motion marches in place."""
    from_default_pose: bool = True
    """Whether the reference motion starts from the default pose or from zero angles."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("swing", "stride"):
            for joint, foot, *_ in getattr(self, name):
                if foot >= len(self.offsets):
                    raise InputError(
                        f"task.gait.{name} moves joint {joint} with foot {foot}; feet go from 0 to "
                        f"{len(self.offsets) - 1}, as many as there are offsets."
                    )


@dataclass(frozen=True)
class ActionConfig(Checked, section="task.actions"):
    """From the policy's output to joint targets."""

    scale: Annotated[float, above(0, 100)] = 0.25
    """Joint angle per unit of action, rad."""
    clip: Annotated[float, above(0, 1e4)] = 18.0
    """Limit on raw and applied actions."""
    on_reference: bool = False
    """Add the action to the reference motion instead of the default pose."""


@dataclass(frozen=True)
class ObservationConfig(Checked, section="task.observations"):
    """What actor and critic see."""

    actor_frames: Annotated[int, between(1, 1000)] = 15
    """Frames in the actor's history."""
    critic_frames: Annotated[int, between(1, 1000)] = 3
    """Frames in the critic's history."""
    clip: Annotated[float, above(0, 1e6)] = 18.0
    """Limit on every entry."""
    command_scale: Annotated[float, between(0, 1000)] = 2.0
    """Scale of the planar command and of the base velocity."""
    joint_velocity_scale: Annotated[float, between(0, 1000)] = 0.05
    """Scale of joint velocities."""
    mass_scale: Annotated[float, between(0.001, 1e6)] = 30.0
    """The critic sees the base mass divided by this, kg."""
    noise: Annotated[float, between(0, 100)] = 0.6
    """Factor on all observation noise; 0 turns it off."""
    joint_noise: Annotated[float, between(0, 100)] = 0.05
    """Standard deviation of joint-angle noise, rad."""
    joint_velocity_noise: Annotated[float, between(0, 100)] = 0.5
    """The same for joint velocities, rad/s."""
    angular_velocity_noise: Annotated[float, between(0, 100)] = 0.1
    """The same for the base's angular velocity, rad/s."""
    orientation_noise: Annotated[float, between(0, 100)] = 0.03
    """The same for roll, pitch and yaw, rad."""


@dataclass(frozen=True)
class RewardConfig(Checked, section="task.rewards"):
    """Weights and parameters by term name, and the constants that terms share."""

    weights: Annotated[dict[str, float], between(-1e6, 1e6)] = field(default_factory=dict)
    """Weight by term; the total is the sum of weight * control_dt * term, not below zero."""
    parameters: Annotated[dict[str, dict[str, float]], between(-1e9, 1e9)] = field(
        default_factory=dict
    )
    """Parameters by term, where they differ from the term's defaults."""
    base_height: Annotated[float, between(0, 100)] = 0.78
    """Target height of the base above the stance soles, m."""
    foot_offset: Annotated[float, between(-10, 10)] = 0.035
    """Height of the foot frame above the sole, m."""
    foot_height: Annotated[float, between(0, 10)] = 0.06
    """Target height of a swinging foot, m."""
    contact_force: Annotated[float, between(0, 1e6)] = 425.0
    """Foot force above which a penalty applies, N."""
    feet_distance: Annotated[Range, between(0, 100)] = (0.2, 0.5)
    """Allowed distance between the feet, m."""
    knee_distance: Annotated[Range, between(0, 100)] = (0.2, 0.25)
    """Allowed distance between the knees, m."""
    abduction_joints: tuple[tuple[Number, ...], ...] = ((1, 2), (7, 8))
    """Joints per leg that default_joint_pos keeps close to the default pose."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _read_weights(self.weights))
        super().__post_init__()
        _check_ordered(self, "feet_distance", "knee_distance")


def _read_weights(given: Any) -> dict[str, float]:
    """Return weights by term; earlier versions wrote a list of (term, weight)."""
    pairs: Iterable[Any] = given.items() if isinstance(given, Mapping) else given
    try:
        return {str(name): float(weight) for name, weight in pairs}
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"task.rewards.weights must be weights by reward term, got {show(given)}."
        ) from None


@dataclass(frozen=True)
class RandomisationConfig(Checked, section="task.randomisation"):
    """What varies during training; nothing by default."""

    friction: Annotated[Range, above(0, 100)] = (1.0, 1.0)
    """Sliding friction, drawn once per environment."""
    base_mass: Annotated[Range, between(-1000, 1000)] = (0.0, 0.0)
    """Mass added to the base, kg, drawn once per environment."""
    mass_scale: Annotated[float, between(0.01, 100)] = 1.0
    """Factor on all masses and inertias."""
    push_every: Annotated[float, between(0, 1e6)] = 0.0
    """Time between pushes, s; 0 for none."""
    push_velocity: Annotated[float, between(0, 100)] = 0.2
    """A push sets the planar base velocity to a value within this, m/s."""
    push_angular_velocity: Annotated[float, between(0, 100)] = 0.4
    """A push sets the base's angular velocity to a value within this, rad/s."""
    action_delay: Annotated[float, between(0, 1)] = 0.0
    """Largest share of the previous action in the applied one, drawn every step."""
    action_noise: Annotated[float, between(0, 10)] = 0.0
    """Multiplicative action noise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_ordered(self, "friction", "base_mass")


@dataclass(frozen=True)
class TerminationConfig(Checked, section="task.terminations"):
    """When an episode ends."""

    duration: Annotated[float, above(0, 1e9)] = 24.0
    """Length of a full episode, s."""
    base_force: Annotated[float, above(0, 1e9)] = 1.0
    """Contact force on the base that ends the episode, N."""
    roll: Annotated[float | None, above(0, 10)] = 0.8
    """Largest |roll|, rad; ``None`` for no limit."""
    pitch: Annotated[float | None, above(0, 10)] = 1.0
    """Largest |pitch|, rad; ``None`` for no limit."""
    height: Annotated[float | None, between(-100, 100)] = 0.5
    """Lowest base height, m; ``None`` for no limit."""


@dataclass(frozen=True)
class LeggedTaskConfig(Checked, section="task"):
    """What every task of a legged robot has; the base of your own tasks."""

    kind: str = ""
    """Which environment: a name in :data:`TASK_KINDS`."""
    robot: str = "g1"
    """Name of the robot."""
    start_height: Annotated[float, above(0, 100)] = 0.80
    """Base height at reset, m."""
    start_joint_noise: Annotated[float, between(0, 10)] = 0.1
    """Joint angles at reset are the default pose plus up to this, rad."""
    simulation: SimulationConfig = field(default_factory=SimulationConfig)
    """Physics and control rate."""
    actions: ActionConfig = field(default_factory=ActionConfig)
    """From policy to joint targets."""
    observations: ObservationConfig = field(default_factory=ObservationConfig)
    """What actor and critic see."""
    rewards: RewardConfig = field(default_factory=RewardConfig)
    """Reward terms."""
    randomisation: RandomisationConfig = field(default_factory=RandomisationConfig)
    """What varies during training."""
    terminations: TerminationConfig = field(default_factory=TerminationConfig)
    """When an episode ends."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_lasts("terminations.duration", self.terminations.duration)
        if self.randomisation.push_every:
            self.check_lasts("randomisation.push_every", self.randomisation.push_every)

    def check_lasts(self, name: str, seconds: float) -> None:
        """Raise if a time is shorter than a control step."""
        step = self.simulation.control_dt
        if seconds < step:
            raise InputError(
                f"task.{name} must be at least {step:g}, got {seconds}: a control step."
            )

    @property
    def episode_steps(self) -> int:
        """Control steps of a full episode."""
        return round(self.terminations.duration / self.simulation.control_dt)

    @classmethod
    def from_dict(cls, data: Any, where: str = "task") -> LeggedTaskConfig:
        """Read a task of any kind from plain data; the kind says which fields it has."""
        from prism_motor.runs.configs import from_dict

        kind = data.get("kind", "velocity") if isinstance(data, dict) else "velocity"
        return from_dict(find_config_type(kind), data, where)


@dataclass(frozen=True)
class TaskConfig(LeggedTaskConfig):
    """A complete velocity task."""

    kind: str = "velocity"
    """Which environment: a name in :data:`TASK_KINDS`."""
    commands: CommandConfig = field(default_factory=CommandConfig)
    """Velocity commands."""
    gait: GaitConfig = field(default_factory=GaitConfig)
    """Gait clock and reference motion."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_lasts("commands.resample_after", self.commands.resample_after)


TASK_KINDS: Registry[Any] = Registry(
    "kind of task", {"velocity": "prism_motor.locomotion.env:VelocityEnv"}
)
"""Environment classes by kind of task."""


def register_task_kind(name: str, env: type) -> None:
    """Register your own kind of task.

    Args:
        name: Its name, the ``kind`` of its configs.
        env: The environment, a subclass of :class:`prism_motor.locomotion.legged.LeggedEnv`, whose
            ``config_type`` is the dataclass of its tasks.
    """
    config = getattr(env, "config_type", None)
    if not (isinstance(config, type) and is_dataclass(config)) or not issubclass(
        config, LeggedTaskConfig
    ):
        raise InputError(
            f"{env.__name__}.config_type must be a dataclass that extends LeggedTaskConfig, "
            f"got {config!r}."
        )
    default = next(f.default for f in fields(config) if f.name == "kind")
    if config is not LeggedTaskConfig and default != name:
        raise InputError(
            f"{config.__name__}.kind is {default!r} by default; it must be {name!r}: that is how "
            "a saved run finds its environment."
        )
    TASK_KINDS.register(name, env)


def find_env_type(kind: str) -> Any:
    """Return the environment class of a kind of task."""
    found = TASK_KINDS[kind]
    if isinstance(found, str):
        module, _, name = found.partition(":")
        found = getattr(importlib.import_module(module), name)
    return found


def find_config_type(kind: str) -> type[LeggedTaskConfig]:
    """Return the dataclass of a kind of task."""
    return TaskConfig if kind == "velocity" else find_env_type(kind).config_type


def _check_ordered(config: Checked, *names: str) -> None:
    for name in names:
        low, high = getattr(config, name)
        if not low <= high:
            raise InputError(
                f"{config.section}.{name} must be [lowest, highest], got [{low}, {high}]."
            )
