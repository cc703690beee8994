"""Physical quantities that no policy sees, for every control step of a rollout.

They are read at the end of a control step: torque and joint velocity from the state, foot forces
and foot velocities from sensors that lag by one physics step. A foot's velocity is that of its
frame, as in the paper, so a foot that rolls over its toes moves too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from prism_motor.locomotion.rewards import Step
    from prism_motor.sim.robots.robot import Robot

TOTALS = (
    "joint_power",
    "joint_power_signed",
    "joint_power_net",
    "slip_velocity",
    "foot_speed",
    "normal_force",
    "foot_impulse",
    "contact_power",
    "tracking_error",
    "yaw_error",
    "orientation_error",
    "velocity_forward",
    "velocity_sideways",
    "yaw_rate",
    "base_height",
    "roll",
    "pitch",
)
"""Quantities of the whole robot, in order; foot quantities are sums over the feet.

``joint_power`` is gross, sum |tau_j dq_j| (the paper's Figure 1a); ``joint_power_net`` is the size
of the sum, |tau' dq| (its Table 4); ``joint_power_signed`` is the sum itself.
"""

PER_FOOT = ("contact", "slip_velocity", "normal_force", "foot_impulse", "contact_power")
"""Quantities of single feet, e.g. ``slip_velocity_left_ankle_roll``."""


def joint_power(torque: Tensor, velocity: Tensor) -> Tensor:
    """Return the mechanical power of every joint, W."""
    return torque * velocity


def planar_speed(foot_velocity: Tensor) -> Tensor:
    """Return the speed of every foot along flat ground, m/s: (N, F, 3) -> (N, F)."""
    return foot_velocity[..., :2].norm(dim=-1)


def slip_velocity(foot_velocity: Tensor, contact: Tensor) -> Tensor:
    """Return the speed of every foot along the ground while it touches it, else 0, m/s."""
    return planar_speed(foot_velocity) * contact


def contact_power(foot_force: Tensor, foot_velocity: Tensor) -> Tensor:
    """Return the power of the ground on every foot, W; sliding makes it negative."""
    return (foot_force * foot_velocity).sum(-1)


def tracking_error(command: Tensor, velocity: Tensor) -> Tensor:
    """Return the norm of the planar velocity error, m/s."""
    return (command[:, :2] - velocity[:, :2]).norm(dim=-1)


def orientation_error(gravity: Tensor) -> Tensor:
    """Return the angle between the base's vertical axis and the world's, rad."""
    return torch.atan2(gravity[:, :2].norm(dim=-1), -gravity[:, 2])


class QuantityMeter:
    """Reads all quantities of many robots, step by step.

    Args:
        robot: The robot.
        num_envs: Number of environments.
        control_dt: Control step, s.

    Attributes:
        names: One name per column.
        impulse: Normal force integrated over the current contact of every foot, N s, (N, F).
    """

    def __init__(self, robot: Robot, num_envs: int, control_dt: float) -> None:
        self.names = (*TOTALS, *(f"{name}_{foot}" for name in PER_FOOT for foot in robot.feet))
        self.control_dt = control_dt
        self.impulse = torch.zeros(num_envs, len(robot.feet))

    def read(self, step: Step) -> Tensor:
        """Return the quantities after one control step, (N, columns)."""
        state, contact = step.state, step.contact
        normal = state.foot_force[..., 2].clamp(min=0.0)
        self.impulse = torch.where(contact, self.impulse + normal * self.control_dt, 0.0)
        power = joint_power(state.torque, state.dq)
        slip = slip_velocity(state.foot_velocity, contact)
        ground = contact_power(state.foot_force, state.foot_velocity)
        totals = (
            power.abs().sum(-1),
            power.sum(-1),
            power.sum(-1).abs(),
            slip.sum(-1),
            planar_speed(state.foot_velocity).sum(-1),
            normal.sum(-1),
            self.impulse.sum(-1),
            ground.sum(-1),
            tracking_error(step.command, state.velocity),
            (step.command[:, 2] - state.angular_velocity[:, 2]).abs(),
            orientation_error(state.gravity),
            state.velocity[:, 0],
            state.velocity[:, 1],
            state.angular_velocity[:, 2],
            state.base_position[:, 2],
            state.euler[:, 0],
            state.euler[:, 1],
        )
        feet = (contact.float(), slip, normal, self.impulse, ground)
        return torch.cat([torch.stack(totals, dim=-1), *feet], dim=-1)

    def reset(self, envs: Tensor) -> None:
        """Start new episodes in some environments."""
        self.impulse = self.impulse.clone()
        self.impulse[envs] = 0.0
