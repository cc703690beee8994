"""What is right and wrong in a clip: soles, joint limits, speeds, contacts with itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._console import count
from prism_motor.sim.robots import make_robot
from prism_motor.sim.robots.g1_parts import SOLE, SOLE_HEIGHT
from prism_motor.sim.scene import build_model, import_mujoco
from prism_motor.tracking.bodies import ROBOT, kinematics

if TYPE_CHECKING:
    from prism_motor.tracking.motions.clip import Clip

ROUNDING = 1e-4
"""Excess over a joint limit that rounding explains, rad."""
DEEP = 0.02
"""Self-contact deeper than this is reported, m."""
_EVERY = 0.1
"""Seconds between frames whose self-contact is checked."""


@dataclass(frozen=True)
class Findings:
    """What was found in a clip."""

    lowest: float
    """Lowest point of the soles in the whole clip, m."""
    floating: float
    """Height of the lower sole in the middle frame of all, by height, m."""
    beyond_limits: int
    """Frames with a joint beyond its range."""
    worst_limit: str
    """The joint farthest beyond its range, in words; empty without one."""
    too_fast: int
    """Frames in which a joint is faster than its motor."""
    worst_speed: str
    """The joint that exceeds its motor most, in words; empty without one."""
    deepest: float | None = None
    """Deepest contact of the robot with itself, m; None if not checked."""
    touching: str = ""
    """The two links of the deepest contact."""

    def problems(self) -> list[str]:
        """Return what a user should know, in words."""
        said = []
        if self.beyond_limits:
            frames = count(self.beyond_limits, "frame")
            said.append(f"joints beyond their range in {frames}; worst: {self.worst_limit}")
        if self.too_fast:
            frames = count(self.too_fast, "frame")
            said.append(f"joints faster than their motors in {frames}; worst: {self.worst_speed}")
        if self.lowest < -0.02:
            said.append(f"a sole is {-100 * self.lowest:.1f} cm in the ground")
        if self.floating > 0.03:
            said.append(
                f"both soles are more than {100 * self.floating:.1f} cm above the ground for half "
                "of the time"
            )
        if self.deepest is not None and self.deepest > DEEP:
            said.append(f"{self.touching} are {100 * self.deepest:.0f} cm inside each other")
        return said


def sole_heights(qpos: np.ndarray) -> np.ndarray:
    """Return the height of the lowest point of each sole above the ground, (2, N)."""
    position, rotation = kinematics().poses(qpos)
    feet = [kinematics().names.index(foot) for foot in make_robot(ROBOT).feet]
    center, radius = SOLE_HEIGHT
    down = rotation[2][:, feet]
    corners = [position[2, feet] + x * down[0] + y * down[1] + center * down[2] for x, y in SOLE]
    return np.min(corners, axis=0) - radius


def excess(joints: np.ndarray) -> np.ndarray:
    """Return how far joints (T, 29) are beyond their ranges; negative within, rad."""
    low, high = kinematics().limits.T
    return np.maximum(joints - high, low - joints)


def check_clip(clip: Clip, *, contacts: bool = False) -> Findings:
    """Look for what is wrong in a clip.

    Args:
        clip: The clip.
        contacts: Whether to look for links inside each other too, every tenth of a second.
    """
    robot = make_robot(ROBOT)
    soles = sole_heights(clip.qpos).min(axis=0)
    beyond = excess(clip.joints)
    motors = np.array([joint.velocity for joint in robot.joints])
    speed = abs(np.diff(clip.joints, axis=0)) * clip.fps / motors
    limit = speed_limit = ""
    if beyond.max() > ROUNDING:
        joint = int(beyond.max(axis=0).argmax())
        limit = f"{robot.joint_names[joint]} by {beyond[:, joint].max():.3f} rad"
    if speed.max() > 1:
        joint = int(speed.max(axis=0).argmax())
        fastest = speed[:, joint].max() * motors[joint]
        speed_limit = f"{robot.joint_names[joint]} at {fastest:.0f} of {motors[joint]:.0f} rad/s"
    deepest, touching = _self_contact(clip) if contacts else (None, "")
    return Findings(
        lowest=float(soles.min()),
        floating=float(np.median(soles)),
        beyond_limits=int((beyond > ROUNDING).any(axis=1).sum()),
        worst_limit=limit,
        too_fast=int((speed > 1).any(axis=1).sum()),
        worst_speed=speed_limit,
        deepest=deepest,
        touching=touching,
    )


def _self_contact(clip: Clip) -> tuple[float, str]:
    """Return the deepest contact of the robot with itself, and its links."""
    mujoco, (model, data) = import_mujoco(), _scene()
    deepest, names = 0.0, ""
    for state in clip.qpos[:: max(1, round(_EVERY * clip.fps))]:
        data.qpos[:] = state
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        for i in range(data.ncon):
            pair = [int(model.geom_bodyid[geom]) for geom in data.contact[i].geom]
            if 0 not in pair and -data.contact[i].dist > deepest:
                deepest = float(-data.contact[i].dist)
                names = " and ".join(model.body(body).name for body in pair)
    return deepest, names


@cache
def _scene() -> tuple[Any, Any]:
    model = build_model(make_robot(ROBOT), timestep=0.005)
    return model, import_mujoco().MjData(model)
