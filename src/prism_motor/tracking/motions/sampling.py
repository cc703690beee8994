"""Motions at the control rate: resampled clips with velocities, as learning needs them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from prism_motor.sim.kinematics import Bodies, apply
from prism_motor.tracking.bodies import kinematics

if TYPE_CHECKING:
    from prism_motor.tracking.motions.clip import Clip

RATE = 50.0
"""Control steps per second."""
SMOOTHING = 2.0
"""Standard deviation of the Gaussian that smooths body velocities, frames of the clip."""


@dataclass(frozen=True)
class Motion:
    """A clip at the control rate."""

    name: str
    """Name of the clip."""
    rate: float
    """Frames per second."""
    qpos: np.ndarray
    """(T, 36): root position, root quaternion wxyz, joint angles."""
    joint_velocity: np.ndarray
    """(T, 29), rad/s."""
    velocity: np.ndarray
    """Linear velocities of all bodies, (3, 31, T), m/s."""
    angular_velocity: np.ndarray
    """Angular velocities of all bodies, (3, 31, T), rad/s."""

    def __len__(self) -> int:
        return len(self.qpos)

    @cached_property
    def bodies(self) -> Bodies:
        """Poses and velocities of all bodies."""
        poses = kinematics().poses(self.qpos)
        return Bodies(*poses, self.velocity, self.angular_velocity)

    @cached_property
    def qvel(self) -> np.ndarray:
        """Velocities of the simulation, (T, 35): root linear (world), angular (body), joints."""
        turn = self.bodies.rotation[:, :, 0].swapaxes(0, 1)
        root = [self.velocity[:, 0], apply(turn, self.angular_velocity[:, 0])]
        return np.concatenate([np.concatenate(root).T, self.joint_velocity], axis=1)


def make_motion(clip: Clip, rate: float = RATE) -> Motion:
    """Resample a clip: root and joints linearly, with slerp for the root's orientation.

    Velocities are computed at the clip's own rate and then interpolated: forward differences for
    joints, smoothed differences for bodies (central for positions, forward for orientations).

    Args:
        clip: The clip.
        rate: Frames per second of the motion.
    """
    joints = np.diff(clip.joints, axis=0, append=clip.joints[-1:]) * clip.fps
    joints[-1] = joints[-2]
    velocity, angular = body_velocities(clip)
    given, wanted = _times(clip, rate)
    return Motion(
        clip.name,
        rate,
        qpos=resample(clip, rate).qpos,
        joint_velocity=_interpolate(joints, given, wanted),
        velocity=_interpolate(velocity.T, given, wanted).T,
        angular_velocity=_interpolate(angular.T, given, wanted).T,
    )


def resample(clip: Clip, rate: float) -> Clip:
    """Return a clip at another frame rate, from the same first frame."""
    from scipy.spatial.transform import Rotation, Slerp

    given, wanted = _times(clip, rate)
    turn = Slerp(given, Rotation.from_quat(np.roll(clip.quaternion, -1, axis=1)))(wanted)
    quaternion = np.roll(turn.as_quat(), 1, axis=1)
    return replace(
        clip,
        fps=rate,
        position=_interpolate(clip.position, given, wanted),
        quaternion=quaternion * quaternion_signs(quaternion)[:, None],
        joints=_interpolate(clip.joints, given, wanted),
    )


def _times(clip: Clip, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of the clip's frames, and those of another rate within them."""
    given = np.arange(len(clip)) / clip.fps
    # Rounding must neither lose the last frame nor go beyond it.
    wanted = np.arange(int(clip.seconds * rate + 1e-6) + 1) / rate
    return given, np.minimum(wanted, given[-1])


def quaternion_signs(quaternion: np.ndarray) -> np.ndarray:
    """Return factors that give neighbouring quaternions the same sign."""
    flipped = (quaternion[1:] * quaternion[:-1]).sum(axis=1) < 0
    return np.concatenate([[1.0], np.cumprod(np.where(flipped, -1.0, 1.0))])


def body_velocities(clip: Clip) -> tuple[np.ndarray, np.ndarray]:
    """Return linear and angular velocities of all bodies at the clip's rate, (3, 31, T) each."""
    from scipy.ndimage import gaussian_filter1d
    from scipy.spatial.transform import Rotation

    position, rotation = kinematics().poses(clip.qpos)
    matrices = np.moveaxis(rotation, (0, 1), (-2, -1))  # (bodies, T, 3, 3)
    turns = matrices[:, 1:] @ matrices[:, :-1].swapaxes(-1, -2)
    vectors = Rotation.from_matrix(turns.reshape(-1, 3, 3)).as_rotvec().reshape(*turns.shape[:2], 3)
    angular = np.concatenate([vectors, vectors[:, -1:]], axis=1) * clip.fps
    linear = np.gradient(position, axis=-1) * clip.fps
    smooth = [
        gaussian_filter1d(values, SMOOTHING, axis=-1, mode="nearest")
        for values in (linear, np.moveaxis(angular, -1, 0))
    ]
    return smooth[0], smooth[1]


def _interpolate(values: np.ndarray, given: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Interpolate along the first axis, linearly."""
    after = np.clip(np.searchsorted(given, wanted), 1, len(given) - 1)
    share = (wanted - given[after - 1]) / (given[after] - given[after - 1])
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    return values[after - 1] + share * (values[after] - values[after - 1])
