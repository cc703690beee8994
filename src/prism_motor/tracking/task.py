"""Settings of the tracking task: robot, clips, actions, starts and randomisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from prism_motor._checks import InputError
from prism_motor._ranges import Checked, above, between, length
from prism_motor.sim.scene import SOLVER, SolverVersion
from prism_motor.tracking.observations import Layout

Range = Annotated[tuple[float, float], length(2, 2)]
"""Lowest and highest value."""


@dataclass(frozen=True)
class TrackingActionConfig(Checked, section="task.actions"):
    """What an action between -1 and 1 does: it moves the drives' targets off the default pose."""

    unit: Literal["effort", "clips"] = "effort"
    """How far an action of one reaches: ``effort``, as far as 1.25 times the motor's limit bends
    the drive; ``clips``, as far from the default pose as any clip goes, and the margin."""
    margin: Annotated[float, between(0, 3)] = 0.35
    """What is added to the reach of the clips, rad."""


@dataclass(frozen=True)
class StartConfig(Checked, section="task.starts"):
    """How episodes begin and end; every one begins in a frame of a clip."""

    lying: Annotated[float, between(0, 1)] = 0.3
    """Share of episodes that begin lying: turned by a right angle about the world's x axis."""
    lying_height: Annotated[float, between(0.1, 2)] = 0.5
    """Height of the pelvis then, m."""
    duration: Annotated[float, above(0, 1000)] = 10.0
    """Length of an episode, s; it ends with the first step past it."""
    after_fall: Annotated[float, between(0, 1000)] | None = None
    """Seconds after a fall at which an episode ends; ``None``: only with its duration."""


@dataclass(frozen=True)
class TrackingRandomisation(Checked, section="task.randomisation"):
    """What differs between robots, episodes and steps."""

    friction: Annotated[Range, between(0.01, 5)] = (0.5, 1.25)
    """Friction of soles and ground, drawn once per environment."""
    mass: Annotated[Range, between(0.1, 5)] = (0.95, 1.05)
    """Factor on the mass and inertia of every link, each drawn once per environment."""
    center_of_mass: Annotated[float, between(0, 0.5)] = 0.02
    """Largest shift of the torso's centre of mass along every axis, m, once per environment."""
    joint_offset: Annotated[float, between(0, 0.5)] = 0.02
    """Largest offset of joint encoders, rad, per episode; in targets and observations alike."""
    push_seconds: Annotated[tuple[int, ...], between(1, 1000), length(0, 16)] = (1, 2)
    """Whole seconds between pushes, drawn after each one; empty: none."""
    push_velocity: Annotated[float, between(0, 10)] = 0.5
    """Largest change of the planar velocity by a push, per axis, m/s."""
    push_rate: Annotated[float, between(0, 20)] = 0.5
    """Largest change of the angular velocity, per axis, rad/s."""
    noise: Annotated[float, between(0, 10)] = 1.0
    """Factor on the noise of what the actor sees; 0: none."""
    mass_scale: Annotated[float, between(0.1, 5)] = 1.0
    """Factor on all masses and inertias."""

    @property
    def is_random(self) -> bool:
        """Whether anything is drawn at all."""
        ranges = self.friction[0] < self.friction[1] or self.mass[0] < self.mass[1]
        pushes = bool(self.push_seconds) and (self.push_velocity > 0 or self.push_rate > 0)
        return ranges or pushes or max(self.center_of_mass, self.joint_offset, self.noise) > 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("friction", "mass"):
            low, high = getattr(self, name)
            if low > high:
                raise InputError(
                    f"task.randomisation.{name} must be a lower and a higher value, got "
                    f"{low:g} and {high:g}."
                )


NOMINAL = TrackingRandomisation(
    friction=(1.0, 1.0), mass=(1.0, 1.0), center_of_mass=0.0, joint_offset=0.0, push_seconds=(),
    push_velocity=0.0, push_rate=0.0, noise=0.0,
)  # fmt: skip
"""The robot as it was built, on plain ground, undisturbed."""


@dataclass(frozen=True)
class TrackingTask(Checked, section="task"):
    """What a tracking policy learns."""

    robot: Literal["g1-29", "g1-29-soft-waist"] = "g1-29"
    """The robot."""
    clips: Annotated[tuple[str, ...], length(0, 10_000)] = ()
    """Clips to learn from: names of shipped ones, files, or folders; none: all shipped ones."""
    timestep: Annotated[float, above(0, 0.05)] = 0.005
    """Physics step, s."""
    substeps: Annotated[int, between(1, 100)] = 4
    """Physics steps per control step."""
    solver: SolverVersion = SOLVER
    """Version of the contact solver: 1, at most 5 iterations of 8 line searches, as in runs from
    before this setting; 2, at most 20 of 20, which converges."""
    compact: bool = False
    """Whether the privileged state has eleven key bodies instead of 31."""
    history: Annotated[int, between(1, 100)] = 4
    """Past steps that the actor sees."""
    ahead: Annotated[int, between(1, 1000)] = 1
    """Coming frames whose mean latent prompts a step when a clip is tracked."""
    actions: TrackingActionConfig = field(default_factory=TrackingActionConfig)
    """What actions do."""
    starts: StartConfig = field(default_factory=StartConfig)
    """How episodes begin and end."""
    randomisation: TrackingRandomisation = field(default_factory=TrackingRandomisation)
    """What differs between robots, episodes and steps."""
    units: Annotated[tuple[float, ...], above(0, 100), length(0, 100)] = ()
    """How far an action of one moves each joint's target, rad; follows from the rest."""

    @property
    def layout(self) -> Layout:
        """What is observed."""
        return Layout(compact=self.compact, steps=self.history)

    @property
    def control_dt(self) -> float:
        """Seconds per control step."""
        return self.timestep * self.substeps

    @property
    def episode_steps(self) -> int:
        """Control steps of an episode that reaches its duration."""
        return round(self.starts.duration / self.control_dt)
