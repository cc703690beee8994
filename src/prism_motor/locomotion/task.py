"""Settings of the velocity task; one frozen dataclass a part, presets in ``presets.py``."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

Range = tuple[float, float]


@dataclass(frozen=True)
class SimulationConfig:
    """Physics and control rate."""

    timestep: float = 0.001
    """Physics step, s."""
    substeps: int = 10
    """Physics steps per control step."""

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


@dataclass(frozen=True)
class GaitConfig:
    """Gait clock and reference motion."""

    cycle: float = 0.64
    """Duration of one gait cycle, s."""
    double_support: float = 0.1
    """Feet are all in stance while |sin(phase)| is below this."""
    offsets: tuple[float, ...] = (0.0, 0.5)
    """Phase of each foot as a fraction of the cycle."""
    amplitude: float = 0.316
    """Size of the reference motion, rad."""
    swing: tuple[tuple[int, int, float], ...] = ()
    """Reference motion: (joint, foot, factor) adds factor * amplitude * swing of that foot."""
    from_default_pose: bool = True
    """Whether the reference motion starts from the default pose or from zero angles."""


@dataclass(frozen=True)
class ActionConfig:
    """From the policy's output to joint targets."""

    scale: float = 0.25
    """Joint target per unit of action, rad."""
    clip: float = 18.0
    """Limit on raw and applied actions."""
    on_reference: bool = False
    """Add the action to the reference motion instead of the default pose."""


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


@dataclass(frozen=True)
class RewardConfig:
    """Weights by term name, and the constants that terms share."""

    weights: tuple[tuple[str, float], ...] = ()
    """(term, weight); the total is the sum of weight * control_dt * term, not below zero."""
    base_height: float = 0.78
    """Target height of the base above the stance soles, m."""
    foot_offset: float = 0.035
    """Height of the foot frame above the sole, m."""
    foot_height: float = 0.06
    """Target height of a swinging foot, m."""
    contact_force: float = 425.0
    """Foot force above which it is punished, N."""
    feet_distance: Range = (0.2, 0.5)
    """Allowed distance between the feet, m."""
    knee_distance: Range = (0.2, 0.25)
    """Allowed distance between the knees, m."""
    abduction_joints: tuple[tuple[int, ...], ...] = ((1, 2), (7, 8))
    """Joints per leg that default_joint_pos holds close to the default pose."""


@dataclass(frozen=True)
class RandomisationConfig:
    """What varies during training; the default is none of it."""

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


@dataclass(frozen=True)
class TaskConfig:
    """A complete velocity task."""

    robot: str = "g1"
    """Name of the robot."""
    start_height: float = 0.80
    """Base height at reset, m."""
    start_joint_noise: float = 0.1
    """Joint angles at reset are the default pose plus up to this, rad."""
    simulation: SimulationConfig = field(default_factory=SimulationConfig)
    """Physics and control rate."""
    commands: CommandConfig = field(default_factory=CommandConfig)
    """Velocity commands."""
    gait: GaitConfig = field(default_factory=GaitConfig)
    """Gait clock and reference motion."""
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

    @property
    def episode_steps(self) -> int:
        """Control steps of a full episode."""
        return round(self.terminations.duration / self.simulation.control_dt)

    def part_names(self) -> list[str]:
        """Names of all fields, for error messages."""
        return [f.name for f in fields(self)]
