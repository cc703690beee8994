"""Traces: several policies on the same commands, from the same initial states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from prism_motor._errors import InputError
from prism_motor.analysis.recording import record
from prism_motor.analysis.rollouts import Rollout
from prism_motor.analysis.scripts import CommandScript
from prism_motor.analysis.subjects import Subject
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.task import TaskConfig
from prism_motor.nn.checks import check_size

TOUR = CommandScript(
    points=(
        (0.0, 0.0, 0.0, 0.0),
        (2.0, 0.5, 0.0, 0.0),
        (7.0, 0.3, 0.0, 0.5),
        (11.0, 0.0, 0.25, 0.0),
        (15.0, -0.25, 0.0, 0.0),
        (18.0, 0.0, 0.0, 0.0),
    ),
    seconds=20.0,
)
"""Stand, walk, turn, side-step, walk back, stand: all within the commands of the training."""

VELOCITIES = {
    "command_forward": "velocity_forward",
    "command_sideways": "velocity_sideways",
    "command_yaw": "yaw_rate",
}
"""Commands with the quantities that should follow them."""

MECHANICS = ("joint_power", "slip_velocity", "foot_impulse", "contact_power")
"""Quantities of the paper's Figure 1."""

ERRORS = ("tracking_error", "yaw_error")


def read_script(file: Path, seconds: float) -> CommandScript:
    """Read a script: lines of time, forward, sideways and yaw rate, with commas or spaces.

    Args:
        file: The file; lines that begin with ``#`` are comments.
        seconds: When the script ends.
    """
    points = []
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        words = line.split("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            time, forward, sideways, yaw = map(float, words)
        except ValueError:
            raise InputError(
                f"{file}, line {number}: expected time, forward, sideways and yaw rate as four "
                f"numbers, got {line.strip()!r}."
            ) from None
        points.append((time, forward, sideways, yaw))
    return CommandScript(tuple(points), seconds)


def make_script(file: Path | None, seconds: float) -> CommandScript:
    """Read a script from a file, or cut :data:`TOUR` to a length."""
    if file is not None:
        return read_script(file, seconds)
    return CommandScript(tuple(p for p in TOUR.points if p[0] < seconds), seconds)


@dataclass(frozen=True)
class TraceConfig:
    """How traces are recorded."""

    script: CommandScript = field(default_factory=lambda: TOUR)
    """Commands by time."""
    condition: str = "nominal"
    """Condition of the recording."""
    envs: int = 16
    """Robots of every policy; they differ in their initial joint angles."""
    seed: int = 301
    """Seed of the initial states and of all else that is random."""
    threads: int = 1
    """Threads of the simulation."""

    def __post_init__(self) -> None:
        find_condition(self.condition)
        for name in ("envs", "threads"):
            check_size("Traces", name, getattr(self, name))
        if self.seed < 0:
            raise InputError(f"Traces: the seed must not be negative, got {self.seed}.")
        if self.script.seconds > 600:
            raise InputError(
                f"Traces: a script may last up to 600 s, this one ends at {self.script.seconds} s."
            )


@dataclass(frozen=True)
class Trace:
    """One policy along the script; T control steps, N robots, NaN after a fall."""

    subject: Subject
    """The policy."""
    time: np.ndarray
    """Time of the quantities, s, (T,)."""
    commands: np.ndarray
    """What it was told at those times: m/s, m/s, rad/s, (T, 3)."""
    quantities: dict[str, np.ndarray]
    """(N, T) by name, for the whole robot and for every foot."""
    cycle: float
    """Duration of a gait cycle, s."""
    fallen: int
    """Robots that fell."""

    @property
    def robots(self) -> int:
        """How many robots walked."""
        return len(self.quantities["yaw_rate"])

    def smooth(self, name: str) -> np.ndarray:
        """Return a quantity as its mean over the past gait cycle, NaN before the first, (N, T)."""
        values = self.quantities[name]
        steps = max(1, round(self.cycle / (self.time[1] - self.time[0])))
        # A fall is NaN for ever, and so are all sums that reach it.
        total = np.concatenate([np.zeros((len(values), 1)), values.cumsum(1)], axis=1)
        means = np.full_like(values, np.nan)
        means[:, steps - 1 :] = (total[:, steps:] - total[:, :-steps]) / steps
        return means

    def mean(self, name: str) -> float:
        """Return the mean of a quantity over robots and time, up to a fall."""
        return float(np.nanmean(self.quantities[name]))


def count_steps(subjects: Sequence[Subject], config: TraceConfig) -> int:
    """Return how often :func:`record_traces` reports."""
    rates = (s.policy.config.task.simulation.control_dt for s in subjects)
    return sum(config.script.steps(dt) for dt in rates)


def record_traces(
    subjects: Sequence[Subject],
    config: TraceConfig,
    report: Callable[[], None] | None = None,
) -> list[Trace]:
    """Let every policy follow the script in the world of the first one.

    Args:
        subjects: Policies, all of one robot.
        config: How.
        report: Called after every control step.
    """
    world = subjects[0].policy.config.task
    traces = []
    for subject in subjects:
        task = in_world(subject.policy.config.task, world)
        rollout = record(
            subject.policy,
            task,
            config.condition,
            seed=config.seed,
            envs=config.envs,
            script=config.script,
            features=False,
            threads=config.threads,
            report=report,
        )
        traces.append(_trace(subject, rollout, config.script, task.gait.cycle))
    return traces


def in_world(task: TaskConfig, world: TaskConfig) -> TaskConfig:
    """Return a policy's task with friction, masses and initial states of another."""
    return replace(
        task,
        start_height=world.start_height,
        start_joint_noise=world.start_joint_noise,
        randomisation=world.randomisation,
        terminations=world.terminations,
    )


def _trace(subject: Subject, rollout: Rollout, script: CommandScript, cycle: float) -> Trace:
    """Arrange the first episode of every robot by time; what follows a fall is not the script."""
    import torch

    dt = rollout.control_dt
    steps, robots = script.steps(dt), int(rollout.environment.max()) + 1
    first = np.minimum.reduceat(
        rollout.episode, np.searchsorted(rollout.environment, range(robots))
    )
    rows = np.flatnonzero(rollout.episode == first[rollout.environment])
    quantities = {}
    for name, values in zip(rollout.quantities.names, rollout.quantities.values.T, strict=True):
        table = np.full((robots, steps), np.nan)
        table[rollout.environment[rows], rollout.step[rows]] = values[rows]
        quantities[name] = table
    time = dt * np.arange(1, steps + 1)  # quantities are those at the end of a step
    commands = script.at(torch.from_numpy(np.minimum(time, script.seconds - dt))).numpy()
    fallen = int(rollout.fell[rows].sum())
    return Trace(subject, time, commands, quantities, cycle, fallen)
