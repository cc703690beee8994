"""What probes of walking predict: mechanics over the control steps after an observation."""

from __future__ import annotations

import numpy as np

from prism_motor._errors import InputError
from prism_motor.analysis.probe_data import Domain, Target, Windows
from prism_motor.analysis.rollouts import Rollout
from prism_motor.sim.robots import make_robot

MAX_TILT = 0.35
"""Largest |roll| and |pitch| of a robot that counts as upright, rad."""

MIN_HEIGHT = 0.7
"""Lowest base of an upright robot as a share of its standing height: 0.55 m for the G1."""


_JUMPS = {"command_forward": 0.1, "command_sideways": 0.1, "command_yaw": 0.1, "yaw": 3.0}
"""Observations that jump now and then, and from which change in one step on that is a jump.

New commands and angles that wrap from 180 to -180 degrees are not mechanics, and so rare that a
least-squares fit on a history with such a jump in it can be off by any amount.
"""


TARGETS = (
    Target("slip_velocity", "slip velocity", "mean_h sum_feet contact * |v_xy|", "slip_velocity"),
    Target("foot_speed", "foot speed", "mean_h sum_feet |v_xy|", "foot_speed"),
    Target(
        "joint_power", "joint power", "log(1 + sum_h sum_joints |tau * dq|)", "joint_power", True
    ),
    Target("foot_impulse", "foot impulse", "log(1 + sum_h sum_feet F_n)", "normal_force", True),
    Target("tracking_error", "tracking error", "mean_h |v_xy - command|", "tracking_error"),
    Target("orientation_error", "orientation error", "mean_h tilt", "orientation_error"),
)
"""Targets of ``prism probe``; power, impulse and foot speed (its slip) are those of the paper."""


WALKING = Domain(
    TARGETS,
    unit="robot",
    windows="upright windows",
    advice="Record more robots or a longer time, or a policy that walks upright.",
)
"""Robots that walk; each is held out with all of its episodes."""


def cut_windows(rollout: Rollout, horizon: int = 5) -> Windows:
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
    return Windows(
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
