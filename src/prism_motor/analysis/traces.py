"""``prism traces``: several policies on the same commands, from the same initial states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch

from prism_motor._checks import InputError
from prism_motor._ranges import Seed, Threads, above, between
from prism_motor.analysis.recording import record
from prism_motor.analysis.scripts import make_script
from prism_motor.analysis.study import Finding, Report, ResultTable, Study, StudyConfig, silent
from prism_motor.analysis.subjects import Subject, by_arm, load_subjects, same_robot
from prism_motor.analysis.traces_figures import VELOCITIES, draw_mechanics, draw_tracking
from prism_motor.locomotion.conditions import find_condition
from prism_motor.runs import to_dict
from prism_motor.sim.robots import make_robot
from prism_motor.statistics import estimate

if TYPE_CHECKING:
    from prism_motor.analysis.recording import CommandScript
    from prism_motor.analysis.rollouts import Rollout
    from prism_motor.locomotion.task import TaskConfig

MECHANICS = (
    "joint_power",
    "foot_speed",
    "slip_velocity",
    "foot_impulse",
    "contact_power",
    "joint_power_net",
)
"""Quantities of the paper's Figure 1 (foot speed is its slip), and the power of its Table 4."""

ERRORS = ("tracking_error", "yaw_error")

_COLUMNS = {
    "tracking_error": ("linear error, m/s", 3),
    "yaw_error": ("yaw error, rad/s", 3),
    "joint_power": ("joint power, gross, W", 1),
    "joint_power_net": ("joint power, net, W", 1),
    "slip_velocity": ("slip, m/s", 3),
    "normal_force": ("normal force, N", 0),
    "contact_power": ("contact power, W", 1),
}
"""Means in the table: quantity, title and digits."""


@dataclass(frozen=True)
class TraceConfig(StudyConfig, section="traces"):
    """How traces are recorded."""

    script: Path | None = None
    """Text file with a line of time (s), forward, sideways (m/s) and yaw rate (rad/s) for every new
    command; default: stand, walk, turn, side-step, walk back, stand."""
    forward: Annotated[float | None, between(-20, 20)] = None
    """A fixed forward velocity to hold instead of a script, m/s."""
    seconds: Annotated[float, above(0, 600)] = 20.0
    """When the script ends."""
    detail: Annotated[tuple[float, float], between(0, 600)] = (4.0, 6.0)
    """Start and end of the time in which mechanics are drawn and stored step by step, s."""
    condition: str = "nominal"
    """One of nominal, low-friction, payload, pushes, training."""
    envs: Annotated[int, between(1, 100_000)] = 16
    """Robots per policy; they differ in their initial joint angles."""
    seed: Seed = 301
    """Seed of the initial states and everything else random."""
    threads: Threads = 1
    """Threads of the simulation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        find_condition(self.condition)
        start, end = self.detail
        if not 0 <= start < end <= self.seconds:
            raise InputError(
                f"Traces: the detail must start before it ends and lie within the script's "
                f"{self.seconds:g} s, got {start:g} to {end:g} s."
            )
        self.commands()  # fail now if they cannot be read

    def commands(self, turn: float = math.inf) -> CommandScript:
        """Return the script, with yaw rates of the tour up to ``turn``, rad/s."""
        return make_script(self.script, self.forward, seconds=self.seconds, turn=turn)


@dataclass(frozen=True)
class PolicyTrace:
    """One policy along the script; T control steps, N robots, NaN after a fall."""

    subject: Subject
    """The policy."""
    time: np.ndarray
    """Time of the quantities, s, (T,)."""
    commands: np.ndarray
    """Commands at those times: m/s, m/s, rad/s, (T, 3)."""
    quantities: dict[str, np.ndarray]
    """(N, T) by name, for the whole robot and for every foot."""
    cycle: float
    """Duration of a gait cycle, s."""
    fallen: int
    """Robots that fell."""

    @property
    def arm(self) -> str:
        """Arm of the policy."""
        return self.subject.arm

    @property
    def robots(self) -> int:
        """How many robots walked."""
        return len(self.quantities["yaw_rate"])

    def smooth(self, name: str) -> np.ndarray:
        """Return a quantity as its mean over the past gait cycle, NaN before the first, (N, T)."""
        values = self.quantities[name]
        steps = max(1, round(self.cycle / (self.time[1] - self.time[0])))
        # Everything after a fall is NaN, and so are all sums that include it.
        total = np.concatenate([np.zeros((len(values), 1)), values.cumsum(1)], axis=1)
        means = np.full_like(values, np.nan)
        means[:, steps - 1 :] = (total[:, steps:] - total[:, :-steps]) / steps
        return means

    def mean(self, name: str) -> float:
        """Return the mean of a quantity over robots and time, up to a fall."""
        return float(np.nanmean(self.quantities[name]))


def record_traces(
    subjects: Sequence[Subject],
    script: CommandScript,
    config: TraceConfig,
    report: Report = silent,
) -> list[PolicyTrace]:
    """Let every policy follow the script in the world of the first policy.

    Args:
        subjects: Policies, all of one robot.
        script: Commands by time.
        config: Settings.
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
            script=script,
            features=False,
            threads=config.threads,
            report=report,
        )
        traces.append(_trace(subject, rollout, script, task.gait.cycle))
    return traces


def in_world(task: TaskConfig, world: TaskConfig) -> TaskConfig:
    """Return a policy's task with the friction, masses and initial states of another."""
    return replace(
        task,
        start_height=world.start_height,
        start_joint_noise=world.start_joint_noise,
        randomisation=world.randomisation,
        terminations=world.terminations,
    )


def _trace(subject: Subject, rollout: Rollout, script: CommandScript, cycle: float) -> PolicyTrace:
    """Arrange the first episode of every robot by time; later ones do not follow the script."""
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
    return PolicyTrace(subject, time, commands, quantities, cycle, fallen)


def make_table(traces: Sequence[PolicyTrace]) -> ResultTable:
    """Return means along the script by arm."""
    rows = []
    for arm, group in by_arm(traces).items():
        fallen, robots = sum(t.fallen for t in group), sum(t.robots for t in group)
        cells = [_cell([t.mean(name) for t in group], d) for name, (_, d) in _COLUMNS.items()]
        rows.append([arm, str(len(group)), f"{fallen} of {robots}", *cells])
    titles = [title for title, _ in _COLUMNS.values()]
    return ResultTable(["arm", "policies", "robots fallen", *titles], rows)


def _cell(values: list[float], digits: int) -> str:
    found = estimate(values)
    spread = "" if found.sd is None else f" ± {found.sd:.{digits}f}"
    return f"{found.centre:.{digits}f}{spread}"


def _caption(traces: Sequence[PolicyTrace], config: TraceConfig) -> str:
    """Explain the numbers."""
    seeds = max(len(group) for group in by_arm(traces).values())
    spread = (
        f"± is the SD over up to {seeds} training seeds"
        if seeds > 1
        else "one policy per arm, so nothing here says how training seeds differ"
    )
    return (
        f"Means over {config.envs} robots per policy and {config.seconds:g} s of the same "
        f"commands from the same initial states (condition {config.condition}, seed "
        f"{config.seed}), up to a fall; {spread}. Slip and contact power are of foot frames in "
        "contact, contact power is force times velocity, negative where the ground brakes."
    )


def _record(trace: PolicyTrace, config: TraceConfig, foot: str) -> dict[str, Any]:
    start, end = config.detail
    shown = (trace.time >= start) & (trace.time <= end)
    names = (*MECHANICS, f"foot_impulse_{foot}", *VELOCITIES.values())
    steps = {name: _plain(trace.quantities[name][0][shown]) for name in names}
    smooth = {
        name: {
            "mean": _plain(_quietly(np.nanmean, trace.smooth(name))),
            "low": _plain(_quietly(np.nanquantile, trace.smooth(name), 0.1)),
            "high": _plain(_quietly(np.nanquantile, trace.smooth(name), 0.9)),
        }
        for name in VELOCITIES.values()
    }
    return {
        "robots": trace.robots,
        "fallen": trace.fallen,
        "means": {name: trace.mean(name) for name in (*ERRORS, *MECHANICS, "normal_force")},
        "time": _plain(trace.time),
        "commands": {name: _plain(trace.commands[:, i]) for i, name in enumerate(VELOCITIES)},
        "velocities": smooth,
        "detail": {"time": _plain(trace.time[shown]), **steps},
    }


def _quietly(function: Any, values: np.ndarray, *options: float) -> np.ndarray:
    """Reduce over robots; NaN where no robot is left."""
    found = np.full(values.shape[1], np.nan)
    alive = np.isfinite(values).any(0)
    found[alive] = function(values[:, alive], *options, axis=0)
    return found


def _plain(values: np.ndarray) -> list[float | None]:
    """Return numbers for JSON, short, with ``None`` where there is none."""
    return [round(float(v), 5) if np.isfinite(v) else None for v in values]


def _load(
    paths: Sequence[Path], checkpoint: int | None, config: TraceConfig
) -> tuple[list[Subject], list[str]]:
    subjects, left_out = load_subjects(paths, checkpoint, device=config.device)
    subjects, differing = same_robot(subjects)
    return subjects, left_out + differing


def _count(subjects: Sequence[Subject], config: TraceConfig) -> int:
    rates = (subject.policy.config.task.simulation.control_dt for subject in subjects)
    return sum(config.commands().steps(dt) for dt in rates)


def _run(subjects: Sequence[Subject], config: TraceConfig, report: Report) -> Finding:
    # Policies that were never told to turn fast are not asked to.
    turn = min(subject.policy.config.task.commands.turn_limit for subject in subjects)
    script = config.commands(turn)
    traces = record_traces(subjects, script, config, report)
    foot = make_robot(subjects[0].policy.config.task.robot).feet[0]
    return Finding(
        title="Traces on the same commands",
        caption=_caption(traces, config),
        tables={"": make_table(traces)},
        data={
            "script": to_dict(script),
            "runs": [{**trace.subject.about, **_record(trace, config, foot)} for trace in traces],
        },
        figures={
            "tracking": lambda: draw_tracking(traces),
            "mechanics": lambda: draw_mechanics(traces, config.detail, foot),
        },
    )


TRACES = Study(
    name="traces",
    domain="locomotion",
    help="""Trace commands, velocities, power, slip, impulse and contact power of several policies.

All follow the same commands from the same initial states, with the friction and masses of the first
run's task. Writes traces.json, tracking.png and mechanics.png.""",
    config=TraceConfig,
    load=_load,
    count=_count,
    run=_run,
)
"""``prism traces``."""
