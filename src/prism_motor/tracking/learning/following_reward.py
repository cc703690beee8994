"""How closely a robot follows a clip: the reward of the warm start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from prism_motor.tracking.bodies import heading, to_heading

if TYPE_CHECKING:
    from prism_motor.sim.kinematics import Bodies
    from prism_motor.tracking.env import TrackingStep
    from prism_motor.tracking.observations import Layout
    from prism_motor.tracking.references import References

LOST_TILT, LOST_HEIGHT = 0.5, 0.2
"""A clip is lost when the pelvis's vertical is this far from the clip's, or its height, m."""


@dataclass(frozen=True)
class Term:
    """One part of the reward: weight * exp(-sharpness * squared error)."""

    weight: float
    """Its share of the reward."""
    sharpness: float
    """How fast it falls with the squared error."""


TERMS = {
    "joints_near": Term(0.15, 8.0),
    "joints": Term(0.15, 1.0),
    "joints_far": Term(0.10, 0.2),
    "bodies": Term(0.10, 30.0),
    "vertical": Term(0.15, 10.0),
    "height": Term(0.10, 100.0),
    "velocity": Term(0.10, 4.0),
    "turning": Term(0.05, 1.0),
    "joint_velocities": Term(0.10, 0.02),
}
"""Squared errors, summed over joints and axes, mean over key bodies; their weights add up to 1."""

ACTION_CHANGE, SLIPPAGE = -0.002, -0.02
"""What the raw auxiliary terms of these names cost besides."""


class TrackingReward:
    """Compares robots with frames of clips; nothing depends on where in the world they are.

    Frames are numbered through all clips, and then once more with every velocity zero.

    Args:
        references: The clips.
        layout: Which bodies are compared.
    """

    def __init__(self, references: References, layout: Layout) -> None:
        self._keep = slice(None) if layout.keep is None else layout.keep
        self._qpos = np.concatenate([references.qpos] * 2)
        self._qvel = np.concatenate([references.qvel, np.zeros_like(references.qvel)])
        parts = [self._local(motion.bodies) for motion in references.motions]
        moving = [np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)]
        still = [*moving[:2], *(np.zeros_like(one) for one in moving[2:])]
        self._wanted = [np.concatenate(pair, axis=-1) for pair in zip(moving, still, strict=True)]

    def __call__(self, step: TrackingStep, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rewards (N,), and which robots have lost their clip (N,).

        Args:
            step: What the robots do.
            frames: Number of the frame that each should be in (N,).
        """
        chosen = frames.numpy()
        found = self._local(step.bodies)
        relative, vertical, velocity, turning = (
            np.square(one - wanted[..., chosen]).sum(axis=0)
            for one, wanted in zip(found, self._wanted, strict=True)
        )
        height = step.qpos[:, 2] - self._qpos[chosen, 2]
        joints = np.square(step.qpos[:, 7:] - self._qpos[chosen, 7:]).sum(axis=1)
        errors = {
            # What is far off gets a direction, too, and what is near is not near enough.
            "joints_near": joints,
            "joints": joints,
            "joints_far": joints,
            "bodies": relative.mean(axis=0),
            "vertical": vertical,
            "height": np.square(height),
            "velocity": velocity,
            "turning": turning,
            "joint_velocities": np.square(step.qvel[:, 6:] - self._qvel[chosen, 6:]).sum(axis=1),
        }
        reward = sum(
            term.weight * np.exp(-term.sharpness * errors[name]) for name, term in TERMS.items()
        )
        lost = (vertical > LOST_TILT**2) | (np.abs(height) > LOST_HEIGHT)
        change, slippage = step.terms[:, 0], step.terms[:, 4].clamp(max=5.0)
        total = torch.from_numpy(reward).float() + ACTION_CHANGE * change + SLIPPAGE * slippage
        return total, torch.from_numpy(lost) | ~step.upright

    def _local(self, bodies: Bodies) -> tuple[np.ndarray, ...]:
        """Return bodies around the root, the root's vertical, its velocity and its turning."""
        facing = heading(bodies.rotation[:, :, 0])
        position = bodies.position[:, self._keep]
        return (
            to_heading(position[:, 1:] - position[:, :1], facing),
            bodies.rotation[2, :, 0],
            to_heading(bodies.velocity[:, 0], facing),
            to_heading(bodies.angular_velocity[:, 0], facing),
        )
