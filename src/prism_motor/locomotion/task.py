"""Settings of tasks: one frozen dataclass per part, checked on creation."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from prism_motor._checks import InputError, check_size
from prism_motor._registry import Registry

Range = tuple[float, float]


@dataclass(frozen=True)
class SimulationConfig:
    """Physics and control rate."""

    timestep: float = 0.001
    """Physics step, s."""
    substeps: int = 10
    """Physics steps per control step."""

    def __post_init__(self) -> None:
        _above("task.simulation", 0, timestep=self.timestep)
        check_size("task.simulation", "substeps", self.substeps)

    @property
    def control_dt(self) -> float:
        """Control step, s."""
        return self.timestep * self.substeps


@dataclass(frozen=True)
class CommandConfig:
    """Velocity commands."""

    forward: Range = (-0.3, 0.6)
    """Forward velocity, m/s."""
    sideways: Range = (-0.3, 0.3)
    """Velocity to the left, m/s."""
    heading: Range = (-3.14, 3.14)
    """Target heading, rad; the yaw-rate command follows from it."""
    heading_gain: float = 0.5
    """Yaw rate per heading error, 1/s."""
    yaw_limit: float = 1.0
    """Largest yaw-rate command, rad/s."""
    deadband: float = 0.2
    """Planar commands up to this norm become zero, m/s."""
    resample_after: float = 8.0
    """Time between new commands, s."""

    def __post_init__(self) -> None:
        where = "task.commands"
        _ordered(where, forward=self.forward, sideways=self.sideways, heading=self.heading)
        _at_least(where, 0, yaw_limit=self.yaw_limit, deadband=self.deadband)
        _above(where, 0, resample_after=self.resample_after)


@dataclass(frozen=True)
class GaitConfig:
    """Gait clock and reference motion."""

    cycle: float = 0.64
    """Duration of one gait cycle, s."""
    double_support: float = 0.1
    """All feet are in stance while |sin(phase)| is below this."""
    offsets: tuple[float, ...] = (0.0, 0.5)
    """Phase of each foot as a fraction of the cycle."""
    amplitude: float = 0.316
    """Size of the reference motion, rad."""
    swing: tuple[tuple[int, int, float], ...] = ()
    """Reference motion: (joint, foot, factor) adds factor * amplitude * swing of that foot."""
    from_default_pose: bool = True
    """Whether the reference motion starts from the default pose or from zero angles."""

    def __post_init__(self) -> None:
        _above("task.gait", 0, cycle=self.cycle)
        _at_least("task.gait", 0, double_support=self.double_support)
        if not self.offsets:
            raise InputError("task.gait.offsets is empty; it has one phase per foot.")
        for joint, foot, _ in self.swing:
            if joint < 0 or not 0 <= foot < len(self.offsets):
                raise InputError(
                    f"task.gait.swing moves joint {joint} with foot {foot}; feet go from 0 to "
                    f"{len(self.offsets) - 1}, as many as there are offsets."
                )


@dataclass(frozen=True)
class ActionConfig:
    """From the policy's output to joint targets."""

    scale: float = 0.25
    """Joint angle per unit of action, rad."""
    clip: float = 18.0
    """Limit on raw and applied actions."""
    on_reference: bool = False
    """Add the action to the reference motion instead of the default pose."""

    def __post_init__(self) -> None:
        _above("task.actions", 0, scale=self.scale, clip=self.clip)


@dataclass(frozen=True)
class ObservationConfig:
    """What actor and critic see."""

    actor_frames: int = 15
    """Frames in the actor's history."""
    critic_frames: int = 3
    """Frames in the critic's history."""
    clip: float = 18.0
    """Limit on every entry."""
    command_scale: float = 2.0
    """Scale of the planar command and of the base velocity."""
    joint_velocity_scale: float = 0.05
    """Scale of joint velocities."""
    mass_scale: float = 30.0
    """The critic sees the base mass divided by this, kg."""
    noise: float = 0.6
    """Factor on all observation noise; 0 turns it off."""
    joint_noise: float = 0.05
    """Standard deviation of joint-angle noise, rad."""
    joint_velocity_noise: float = 0.5
    """The same for joint velocities, rad/s."""
    angular_velocity_noise: float = 0.1
    """The same for the base's angular velocity, rad/s."""
    orientation_noise: float = 0.03
    """The same for roll, pitch and yaw, rad."""

    def __post_init__(self) -> None:
        where = "task.observations"
        for name in ("actor_frames", "critic_frames"):
            check_size(where, name, getattr(self, name))
        _above(where, 0, clip=self.clip, mass_scale=self.mass_scale)
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        _at_least(where, 0, **{name: v for name, v in values.items() if "noise" in name})


@dataclass(frozen=True)
class RewardConfig:
    """Weights and parameters by term name, and the constants that terms share."""

    weights: dict[str, float] = field(default_factory=dict)
    """Weight by term; the total is the sum of weight * control_dt * term, not below zero."""
    parameters: dict[str, dict[str, float]] = field(default_factory=dict)
    """Parameters by term, where they differ from the term's defaults."""
    base_height: float = 0.78
    """Target height of the base above the stance soles, m."""
    foot_offset: float = 0.035
    """Height of the foot frame above the sole, m."""
    foot_height: float = 0.06
    """Target height of a swinging foot, m."""
    contact_force: float = 425.0
    """Foot force above which a penalty applies, N."""
    feet_distance: Range = (0.2, 0.5)
    """Allowed distance between the feet, m."""
    knee_distance: Range = (0.2, 0.25)
    """Allowed distance between the knees, m."""
    abduction_joints: tuple[tuple[int, ...], ...] = ((1, 2), (7, 8))
    """Joints per leg that default_joint_pos keeps close to the default pose."""

    def __post_init__(self) -> None:
        where = "task.rewards"
        object.__setattr__(self, "weights", _read_weights(self.weights))
        for name, values in self.parameters.items():
            if not isinstance(values, Mapping):
                raise InputError(
                    f"{where}.parameters.{name} must be values by parameter, got {values!r}."
                )
            _finite(f"{where}.parameters.{name}", **values)
        _ordered(where, feet_distance=self.feet_distance, knee_distance=self.knee_distance)
        _at_least(where, 0, contact_force=self.contact_force)
        if any(joint < 0 for leg in self.abduction_joints for joint in leg):
            raise InputError(f"{where}.abduction_joints must be joint numbers from 0.")


def _read_weights(given: Any) -> dict[str, float]:
    """Return weights by term; earlier versions wrote a list of (term, weight)."""
    pairs: Iterable[Any] = given.items() if isinstance(given, Mapping) else given
    try:
        weights = {str(name): float(weight) for name, weight in pairs}
    except (TypeError, ValueError):
        raise InputError(
            f"task.rewards.weights must be weights by reward term, got {given!r}."
        ) from None
    _finite("task.rewards.weights", **weights)
    return weights


@dataclass(frozen=True)
class RandomisationConfig:
    """What varies during training; nothing by default."""

    friction: Range = (1.0, 1.0)
    """Sliding friction, drawn once per environment."""
    base_mass: Range = (0.0, 0.0)
    """Mass added to the base, kg, drawn once per environment."""
    mass_scale: float = 1.0
    """Factor on all masses and inertias."""
    push_every: float = 0.0
    """Time between pushes, s; 0 for none."""
    push_velocity: float = 0.2
    """A push sets the planar base velocity to a value within this, m/s."""
    push_angular_velocity: float = 0.4
    """A push sets the base's angular velocity to a value within this, rad/s."""
    action_delay: float = 0.0
    """Largest share of the previous action in the applied one, drawn every step."""
    action_noise: float = 0.0
    """Multiplicative action noise."""

    def __post_init__(self) -> None:
        where = "task.randomisation"
        _ordered(where, friction=self.friction, base_mass=self.base_mass)
        _above(where, 0, friction=self.friction[0], mass_scale=self.mass_scale)
        _at_least(
            where, 0, push_every=self.push_every, push_velocity=self.push_velocity,
            push_angular_velocity=self.push_angular_velocity, action_noise=self.action_noise,
        )  # fmt: skip
        if not 0 <= self.action_delay <= 1:
            raise InputError(
                f"{where}.action_delay is a share from 0 to 1, got {self.action_delay}."
            )


@dataclass(frozen=True)
class TerminationConfig:
    """When an episode ends."""

    duration: float = 24.0
    """Length of a full episode, s."""
    base_force: float = 1.0
    """Contact force on the base that ends the episode, N."""
    roll: float | None = 0.8
    """Largest |roll|, rad; ``None`` for no limit."""
    pitch: float | None = 1.0
    """Largest |pitch|, rad; ``None`` for no limit."""
    height: float | None = 0.5
    """Lowest base height, m; ``None`` for no limit."""

    def __post_init__(self) -> None:
        where = "task.terminations"
        _above(where, 0, duration=self.duration, base_force=self.base_force)
        for name in ("roll", "pitch"):
            if getattr(self, name) is not None:
                _above(where, 0, **{name: getattr(self, name)})


@dataclass(frozen=True)
class LeggedTaskConfig:
    """What every task of a legged robot has; the base of your own tasks."""

    kind: str = ""
    """Which environment: a name in :data:`TASK_KINDS`."""
    robot: str = "g1"
    """Name of the robot."""
    start_height: float = 0.80
    """Base height at reset, m."""
    start_joint_noise: float = 0.1
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
        _above("task", 0, start_height=self.start_height)
        _at_least("task", 0, start_joint_noise=self.start_joint_noise)
        step = self.simulation.control_dt
        _at_least("task.terminations", step, duration=self.terminations.duration)
        if self.randomisation.push_every:
            _at_least("task.randomisation", step, push_every=self.randomisation.push_every)

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
        step = self.simulation.control_dt
        _at_least("task.commands", step, resample_after=self.commands.resample_after)


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


def _at_least(where: str, low: float, **values: float) -> None:
    for name, value in values.items():
        if not value >= low:
            raise InputError(f"{where}.{name} must be at least {low:g}, got {value}.")


def _above(where: str, low: float, **values: float) -> None:
    for name, value in values.items():
        if not value > low:
            raise InputError(f"{where}.{name} must be above {low:g}, got {value}.")


def _finite(where: str, **values: float) -> None:
    for name, value in values.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise InputError(f"{where}.{name} must be a finite number, got {value!r}.")


def _ordered(where: str, **ranges: Range) -> None:
    for name, (low, high) in ranges.items():
        if not low <= high:
            raise InputError(f"{where}.{name} must be [lowest, highest], got [{low}, {high}].")
