"""MuJoCo in the robot's place: what it measures, and how it is stepped."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np

from .control import Reading

HOLD_SECONDS = 1.0
"""How long a simulation goes on in the safe posture after a stop, s."""


def import_mujoco() -> Any:
    """Import MuJoCo, which has no type information and writes warnings to a file by default."""
    import mujoco

    module: Any = mujoco
    if module.get_mju_user_warning() is None:
        module.set_mju_user_warning(logging.getLogger("runner").warning)
    return module


def advance(control: dict[str, Any], model: Any, data: Any, targets: np.ndarray) -> None:
    """Step the physics of one control step."""
    mujoco = import_mujoco()
    data.ctrl[:] = targets
    if control["zero_warm_start"]:
        data.qacc_warmstart[:] = 0.0
    for _ in range(control["substeps"]):
        mujoco.mj_step(model, data)


def diverged(data: Any) -> bool:
    """Return whether MuJoCo met a state that is not finite; it then starts over by itself."""
    kinds = import_mujoco().mjtWarning
    bad = (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC)
    return any(data.warning[kind].number for kind in bad)


def read(qpos: np.ndarray, qvel: np.ndarray) -> Reading:
    """Return what a robot in this state would measure."""
    turned = rotation(qpos[3:7])
    euler = np.array(
        [
            math.atan2(turned[2, 1], turned[2, 2]),
            math.asin(min(max(-turned[2, 0], -1.0), 1.0)),
            math.atan2(turned[1, 0], turned[0, 0]),
        ]
    )
    return Reading(qpos[7:].copy(), qvel[6:].copy(), qvel[3:6].copy(), euler)


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a quaternion wxyz."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
