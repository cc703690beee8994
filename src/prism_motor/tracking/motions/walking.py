"""Motions of walking policies of the 12-joint G1, mapped to all 29 joints."""

from __future__ import annotations

import numpy as np

from prism_motor._checks import InputError
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import ROBOT
from prism_motor.tracking.motions.clip import Clip
from prism_motor.tracking.motions.kinematic import RELAXED, relaxed_arms

WALKS: dict[str, tuple[float, float, float]] = {
    "walk-forward": (0.5, 0.0, 0.0),
    "walk-backward": (-0.3, 0.0, 0.0),
    "walk-sideways": (0.0, 0.25, 0.0),
    "walk-turn": (0.2, 0.0, 0.5),
}
"""Held commands by name: forward and sideways velocity (m/s) and yaw rate (rad/s)."""

SECONDS, START = 10.0, 1.0
"""Length of a walk, and of its beginning that is left out, s."""

_SWING = 0.7
"""Angle of an arm per angle of the opposite hip."""


def clip_from_walk(name: str, qpos: np.ndarray, fps: float, policy: str) -> Clip:
    """Map states of the 12-joint G1 to all joints: legs as they are, waist straight, arms swinging.

    Heights stay as they were simulated: a foot that lands presses into the ground for a moment.

    Args:
        name: Name of the clip.
        qpos: States (T, 19) of the walking robot.
        fps: Control steps per second.
        policy: The policy's name, for the record.
    """
    legs = make_robot("g1").joint_names
    names = make_robot(ROBOT).joint_names
    if qpos.ndim != 2 or qpos.shape[1] != 7 + len(legs):
        raise InputError(
            f"clip_from_walk: states of the 12-joint G1 have {7 + len(legs)} numbers, got an array "
            f"of shape {qpos.shape}."
        )
    joints = np.zeros((len(qpos), len(names)))
    joints[:, [names.index(joint) for joint in legs]] = qpos[:, 7:]
    relaxed_arms(joints)
    for side, other in (("left", "right"), ("right", "left")):
        hip = qpos[:, 7 + legs.index(f"{other}_hip_pitch")]
        shoulder = names.index(f"{side}_shoulder_pitch")
        joints[:, shoulder] = RELAXED["shoulder_pitch"] + _SWING * (hip - hip.mean())
    position = qpos[:, :3] - [*qpos[0, :2], 0]
    return Clip(
        name, fps, position, qpos[:, 3:7].copy(), joints,
        source=f"made by prism: the policy {policy} walks in simulation",
        licence="Apache-2.0", attribution="The PRISM maintainers",
    )  # fmt: skip
