"""The clips of a run as states of the simulation, end to end: where episodes begin."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.learning.experts import ExpertClip, ExpertClips
from prism_motor.tracking.motions.library import find_clips
from prism_motor.tracking.motions.sampling import Motion, make_motion
from prism_motor.tracking.observations import (
    Layout,
    RobotFrames,
    at_rest,
    clip_observations,
    read_frames,
)

if TYPE_CHECKING:
    from prism_motor.tracking.task import TrackingActionConfig, TrackingTask

EFFORT_SHARE = 1.25
"""How much of a motor's limit an action of one asks of a drive at rest, for units of ``effort``."""


class References:
    """Motions at the control rate.

    Args:
        motions: The motions, all at the same rate.

    Attributes:
        names: Their names.
        starts: First frame of each among all frames, and the end of the last.
        qpos: Positions of all frames, (T, 7 + joints).
        qvel: Velocities of all frames, (T, 6 + joints).
    """

    def __init__(self, motions: Sequence[Motion]) -> None:
        if not motions:
            raise InputError("Tracking needs at least one motion clip.")
        self.motions = tuple(motions)
        self.names = tuple(motion.name for motion in motions)
        self.lengths = np.array([len(motion) for motion in motions])
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self.qpos = np.concatenate([motion.qpos for motion in motions])
        self.qvel = np.concatenate([motion.qvel for motion in motions])

    def frames(self, layout: Layout, index: int) -> RobotFrames:
        """Return the frames of one motion as they are observed."""
        motion = self.motions[index]
        return read_frames(motion.qpos, motion.qvel, motion.bodies, layout)

    def experts(
        self, layout: Layout, units: Tensor, window: int, device: torch.device | str = "cpu"
    ) -> ExpertClips:
        """Return the motions as a learner sees them, with the actions that would replay them.

        Args:
            layout: What is observed.
            units: How far an action of one moves each target, rad (joints,).
            window: Frames per window.
            device: Where they are kept.
        """
        clips = []
        for index, motion in enumerate(self.motions):
            actions = self.actions(index, units)
            seen = clip_observations(self.frames(layout, index), layout, actions)
            clips.append(ExpertClip(motion.name, seen, actions))
        return ExpertClips(clips, window, device)

    def actions(self, index: int, units: Tensor) -> Tensor:
        """Return the actions (T, joints) that aim the drives at each next frame of a motion."""
        aims = self.aims(units)[self.starts[index] : self.starts[index + 1]]
        return torch.cat([aims[1:], aims[-1:]])

    def aims(self, units: Tensor) -> Tensor:
        """Return the actions (T, joints) that aim the drives at each frame of all motions."""
        aims = torch.from_numpy(self.qpos[:, 7:] - self.default_pose).float() / units
        return aims.clamp(-1, 1)

    def hold(self, index: int, units: Tensor) -> Tensor:
        """Return the action (joints,) that holds the mean pose of a motion."""
        pose = self.motions[index].qpos[:, 7:].mean(axis=0)
        return (torch.from_numpy(pose - self.default_pose).float() / units).clamp(-1, 1)

    def observations(self, layout: Layout, index: int) -> Tensor:
        """Return the observations (T, size) of a motion, as prompts need them."""
        return clip_observations(self.frames(layout, index), layout)

    @cached_property
    def default_pose(self) -> np.ndarray:
        """The robot's default joint angles (joints,), rad."""
        from prism_motor.tracking.bodies import ROBOT

        return make_robot(ROBOT).default_pose

    def check_windows(self, window: int) -> None:
        """Raise unless every motion has a window of frames and one more."""
        short = [
            f"{name} ({length})"
            for name, length in zip(self.names, self.lengths.tolist(), strict=True)
            if length <= window
        ]
        if short:
            raise InputError(
                f"Clips need at least {window + 1} frames at the control rate; too short: "
                f"{', '.join(short)}. Leave them out."
            )

    def still(self, layout: Layout) -> Tensor:
        """Return the observations of all frames with every velocity zero."""
        parts = [at_rest(self.frames(layout, index)) for index in range(len(self.names))]
        return torch.cat([clip_observations(part, layout) for part in parts])

    def digest(self) -> str:
        """Return the SHA-256 of all names and frames."""
        digest = hashlib.sha256()
        for name, length in zip(self.names, self.lengths.tolist(), strict=True):
            digest.update(f"{name} {length}\n".encode())
        for values in (self.qpos, self.qvel):
            digest.update(np.ascontiguousarray(values.astype(np.float32)).tobytes())
        return digest.hexdigest()


def load_references(task: TrackingTask) -> References:
    """Read the clips of a task at its control rate."""
    return References([make_motion(clip, 1 / task.control_dt) for clip in find_clips(task.clips)])


def clips_digest(names: Sequence[str]) -> str:
    """Return the SHA-256 of clips as they are in their files."""
    digest = hashlib.sha256()
    for clip in find_clips(names):
        digest.update(f"{clip.name} {clip.fps} {len(clip)}\n".encode())
        digest.update(np.ascontiguousarray(clip.qpos.astype(np.float32)).tobytes())
    return digest.hexdigest()


def action_units(
    config: TrackingActionConfig, robot: str, references: References
) -> tuple[float, ...]:
    """Return how far an action of one moves each joint's target, rad."""
    joints = make_robot(robot).joints
    if config.unit == "effort":
        return tuple(EFFORT_SHARE * joint.effort / joint.stiffness for joint in joints)
    reach = np.abs(references.qpos[:, 7:] - references.default_pose).max(axis=0)
    return tuple(round(float(one), 6) for one in reach + config.margin)
