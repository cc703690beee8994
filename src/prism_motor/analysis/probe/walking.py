"""Probes of walking: what a policy's features know about the mechanics of the next steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch

from prism_motor._checks import InputError
from prism_motor._ranges import between
from prism_motor.analysis.features import feature_names, read_features
from prism_motor.analysis.probe.finding import make_finding
from prism_motor.analysis.probe.probes import (
    PROBE_HELP,
    ProbeConfig,
    ProbeSet,
    ProbeSubjects,
    ProbeTarget,
    ProbeTargets,
    ProbeWindows,
    join_windows,
    probe_policies,
)
from prism_motor.analysis.recording import record
from prism_motor.analysis.study import Finding, Report, Study, silent
from prism_motor.analysis.subjects import Subject, load_subjects, same_layout
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.policy import WalkingPolicy
from prism_motor.locomotion.ppo import make_actor
from prism_motor.sim.robots import make_robot

if TYPE_CHECKING:
    from prism_motor.analysis.rollouts import Rollout
    from prism_motor.locomotion.task import TaskConfig

_PUSHES = {"push_every": 1.0, "push_velocity": 0.2, "push_angular_velocity": 0.4}
"""Pushes during the recording, as in the paper's protocol: s, m/s, rad/s."""

MAX_TILT = 0.35
"""Largest |roll| and |pitch| of a robot that counts as upright, rad."""

MIN_HEIGHT = 0.7
"""Lowest base of an upright robot as a share of its standing height: 0.55 m for the G1."""


_JUMPS = {"command_forward": 0.1, "command_sideways": 0.1, "command_yaw": 0.1, "yaw": 3.0}
"""Observations that jump now and then, with the smallest one-step change that counts as a jump.

New commands and angles that wrap from 180 to -180 degrees are not mechanics, and are so rare that
a least-squares fit can be off by any amount on a history with such a jump.
"""


TARGETS = (
    ProbeTarget(
        "slip_velocity", "slip velocity", "mean_h sum_feet contact * |v_xy|", "slip_velocity"
    ),
    ProbeTarget("foot_speed", "foot speed", "mean_h sum_feet |v_xy|", "foot_speed"),
    ProbeTarget(
        "joint_power_net", "net joint power", "log(1 + sum_h |sum_joints tau * dq|)",
        "joint_power_net", True,
    ),
    ProbeTarget(
        "joint_power", "gross joint power", "log(1 + sum_h sum_joints |tau * dq|)", "joint_power",
        True,
    ),
    ProbeTarget(
        "foot_impulse", "foot impulse", "log(1 + sum_h sum_feet F_n)", "normal_force", True
    ),
    ProbeTarget("tracking_error", "tracking error", "mean_h |v_xy - command|", "tracking_error"),
    ProbeTarget("orientation_error", "orientation error", "mean_h tilt", "orientation_error"),
)  # fmt: skip
"""Targets of ``prism probe``; foot speed (its slip) and net power are those of the paper's Table 4,
gross power is that of its Figure 1a."""


WALKING = ProbeTargets(
    TARGETS,
    unit="robot",
    windows="upright windows",
    advice="Record more robots or a longer time, or a policy that walks upright.",
)
"""Targets of walking policies; each robot is held out with all its episodes."""


def cut_windows(rollout: Rollout, horizon: int = 5) -> ProbeWindows:
    """Cut a rollout into windows: a full history and future, upright and without a jump.

    Args:
        rollout: The rollout; its features are not needed.
        horizon: Control steps H that targets look ahead.
    """
    if horizon < 1:
        raise InputError(f"Probes: the horizon must be at least 1 step, got {horizon}.")
    starts = _starts(rollout, horizon)
    # A row's quantities are those of the next state, so these are the states t+1..t+H.
    future = starts[:, None] + np.arange(horizon)
    columns = [target.values(rollout.quantities[target.quantity][future]) for target in TARGETS]
    return ProbeWindows(
        observations=rollout.observations.values[starts],
        targets=np.stack(columns, axis=1),
        unit=rollout.environment[starts],
        episodes=len(np.unique(rollout.episode[starts])),
    )


def _starts(rollout: Rollout, horizon: int) -> np.ndarray:
    """Return the rows t of all windows."""
    task = rollout.about["task"]
    frames = task["observations"]["actor_frames"]
    rows = np.arange(len(rollout))
    rows = rows[(rollout.step >= frames - 1) & (rows + horizon <= len(rollout))]
    rows = rows[rollout.episode[rows] == rollout.episode[rows + horizon - 1]]
    height = MIN_HEIGHT * make_robot(task["robot"]).stand_height
    read = rollout.quantities
    fallen = (
        (read["base_height"] <= height)
        | (np.abs(read["roll"]) >= MAX_TILT)
        | (np.abs(read["pitch"]) >= MAX_TILT)
    )
    # The state at t is in the row before; an episode begins upright.
    past = np.minimum(1, rollout.step[rows])
    upright = _count_between(fallen, rows - past, rows + horizon) == 0
    steady = _count_between(_jumped(rollout), rows - frames + 2, rows + horizon) == 0
    return rows[upright & steady]


def _jumped(rollout: Rollout) -> np.ndarray:
    """Return the rows whose observation has jumped since the row before, in the same episode."""
    jumped = np.zeros(len(rollout), dtype=bool)
    for name, limit in _JUMPS.items():
        jumped[1:] |= np.abs(np.diff(rollout.observations[f"{name}[t]"])) > limit
    return jumped & (rollout.step > 0)


def _count_between(flags: np.ndarray, first: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Count the flags of rows first..end-1."""
    total = np.concatenate([[0], np.cumsum(flags)])
    return total[end] - total[first]


@dataclass(frozen=True)
class WalkingProbeConfig(ProbeConfig):
    """How probes of walking are made."""

    condition: str = "pushes"
    """One of nominal, low-friction, payload, pushes (every second), training."""
    envs: Annotated[int, between(1, 100_000)] = 96
    """Robots; per policy with --own, otherwise in total."""
    seconds: Annotated[float, between(1, 600)] = 8.0
    """How long they walk."""

    def __post_init__(self) -> None:
        super().__post_init__()
        find_condition(self.condition)

    def origin(self, found: ProbeSet) -> str:
        """Describe where the windows come from."""
        return f"{found.episodes} episodes of {found.units} robots (condition {self.condition})"


def probe_walking(
    who: ProbeSubjects, config: WalkingProbeConfig, report: Report = silent
) -> ProbeSet:
    """Record windows and probe every policy.

    Args:
        who: The policies.
        config: Settings.
        report: Called after every control step and every feature.
    """

    def recorded(subjects: Sequence[Subject]) -> ProbeWindows:
        """Let policies walk on the task of the first, each on its own seed, and cut windows."""
        task = with_pushes(subjects[0].policy.config.task)
        envs = config.envs if config.own else max(4, -(-config.envs // len(subjects)))
        parts = []
        for number, subject in enumerate(subjects):
            rollout = record(
                subject.policy, task, config.condition, seed=config.seed + number, envs=envs,
                steps=round(config.seconds / task.simulation.control_dt), features=False,
                threads=config.threads, report=report,
            )  # fmt: skip
            parts.append(cut_windows(rollout, config.horizon))
        return join_windows(parts)

    return probe_policies(
        who, config, WALKING, record=recorded, read=read_features, untrained=untrained,
        report=report,
    )  # fmt: skip


def with_pushes(task: TaskConfig) -> TaskConfig:
    """Return the task with the protocol's pushes, for conditions that have pushes."""
    return replace(task, randomisation=replace(task.randomisation, **_PUSHES))


def untrained(policy: WalkingPolicy) -> WalkingPolicy:
    """Return the same network with random weights and the trained normaliser."""
    torch.manual_seed(policy.config.seed)
    actor = make_actor(policy.config)
    actor.obs_normalizer.load_state_dict(policy.actor.obs_normalizer.state_dict())
    found = WalkingPolicy(policy.config, 0, actor.eval(), actor.as_onnx(verbose=False).eval())
    return found.to(policy.device)


def _load(
    paths: Sequence[Path], checkpoint: int | None, config: WalkingProbeConfig
) -> tuple[ProbeSubjects, list[str]]:
    """Load the policies; on shared windows, those with other observations are left out."""
    device = config.device
    subjects, left_out = load_subjects(paths, checkpoint, device=device)
    acting = load_subjects([config.reference], device=device)[0] if config.reference else []
    if not config.own:
        subjects, differing = same_layout(subjects, *acting)
        left_out += differing
    if not subjects:
        raise InputError(f"No run has the same observations as {config.reference}.")
    return ProbeSubjects(subjects, acting or subjects), left_out


def _count(who: ProbeSubjects, config: WalkingProbeConfig) -> int:
    fits = sum(len(feature_names(one.policy)) for one in who.probed)
    steps = round(config.seconds / _control_dt(who))
    return len(who.acting) * steps + fits * (2 if config.untrained else 1)


def _control_dt(who: ProbeSubjects) -> float:
    return who.probed[0].policy.config.task.simulation.control_dt


def _run(who: ProbeSubjects, config: WalkingProbeConfig, report: Report) -> Finding:
    return make_finding(probe_walking(who, config, report), config, who, _control_dt(who))


WALKING_PROBE = Study(
    name="probe",
    domain="locomotion",
    help=PROBE_HELP,
    config=WalkingProbeConfig,
    load=_load,
    count=_count,
    run=_run,
)
"""``prism probe`` of walking runs."""
