"""The reward terms of Humanoid-Gym, one function a term.

A term maps the present step to a value per environment; :class:`Rewards` weighs and adds them.
Terms with memory are classes with ``reset``. Register a new one with :func:`term`, then give it a
weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from prism.locomotion.config import RewardConfig
from prism.locomotion.state import RobotState
from prism.nn.checks import check_choice

CONTACT_FORCE = 5.0
"""Vertical force from which a foot counts as touching the ground, N."""


@dataclass
class Step:
    """Everything a reward term may look at."""

    config: RewardConfig
    state: RobotState
    command: Tensor
    """(N, 3) after resampling."""
    stance: Tensor
    """(N, F) feet that should be on the ground."""
    contact: Tensor
    """(N, F) feet that are on the ground."""
    reference: Tensor
    """(N, J) reference angles of the previous observation."""
    default_pose: Tensor
    """(J,)"""
    actions: tuple[Tensor, Tensor, Tensor]
    """Applied actions: now, one step ago, two steps ago."""
    last_dq: Tensor
    """(N, J) joint velocities one step ago."""
    last_world_velocity: Tensor
    """(N, 6) base velocity one step ago."""
    control_dt: float


class Term(Protocol):
    """A reward term; ``reset`` forgets finished episodes."""

    def __call__(self, step: Step) -> Tensor:
        """Return the unweighted reward, (N,)."""
        ...

    def reset(self, envs: Tensor, foot_height: Tensor) -> None:
        """Forget what happened in ``envs``; ``foot_height`` is where their feet are now."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Return the memory."""
        ...

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore the memory."""
        ...


class _Stateless:
    def __init__(self, function: Callable[[Step], Tensor]) -> None:
        self.function = function

    def __call__(self, step: Step) -> Tensor:
        return self.function(step)

    def reset(self, envs: Tensor, foot_height: Tensor) -> None:
        pass

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        pass


TERMS: dict[str, Callable[[int, int], Term]] = {}
"""Factories of reward terms by name, called with (num_envs, num_feet)."""


def term(function: Callable[[Step], Tensor]) -> Callable[[Step], Tensor]:
    """Register a stateless reward term under its own name."""
    TERMS[function.__name__] = lambda num_envs, num_feet: _Stateless(function)
    return function


# Tracking ---------------------------------------------------------------------------------------


@term
def tracking_lin_vel(step: Step) -> Tensor:
    """Planar velocity as commanded."""
    return torch.exp(-5 * _planar_error(step).square().sum(-1))


@term
def tracking_ang_vel(step: Step) -> Tensor:
    """Yaw rate as commanded."""
    return torch.exp(-5 * _yaw_error(step).square())


@term
def track_vel_hard(step: Step) -> Tensor:
    """The same with a sharper peak and a slope that never ends."""
    planar, yaw = _planar_error(step).norm(dim=-1), _yaw_error(step).abs()
    return (torch.exp(-10 * planar) + torch.exp(-10 * yaw)) / 2 - 0.2 * (planar + yaw)


@term
def low_speed(step: Step) -> Tensor:
    """Forward speed of the right sign and size."""
    speed, wanted = step.state.velocity[:, 0], step.command[:, 0]
    reward = torch.full_like(speed, 1.2)
    reward[speed.abs() > 1.2 * wanted.abs()] = 0.0
    reward[speed.abs() < 0.5 * wanted.abs()] = -1.0
    reward[speed.sign() != wanted.sign()] = -2.0
    return reward * (wanted.abs() > 0.1)


def _planar_error(step: Step) -> Tensor:
    return step.command[:, :2] - step.state.velocity[:, :2]


def _yaw_error(step: Step) -> Tensor:
    return step.command[:, 2] - step.state.angular_velocity[:, 2]


# Posture ----------------------------------------------------------------------------------------


@term
def orientation(step: Step) -> Tensor:
    """Base upright."""
    tilt = step.state.euler[:, :2].abs().sum(-1)
    sideways_gravity = step.state.gravity[:, :2].norm(dim=-1)
    return (torch.exp(-10 * tilt) + torch.exp(-20 * sideways_gravity)) / 2


@term
def base_height(step: Step) -> Tensor:
    """Base at its height above the soles of the stance feet."""
    stance = step.stance.float()
    ground = (step.state.foot_position[..., 2] * stance).sum(-1) / stance.sum(-1).clamp(min=1)
    height = step.state.base_position[:, 2] - (ground - step.config.foot_offset)
    return torch.exp(-100 * (height - step.config.base_height).abs())


@term
def vel_mismatch_exp(step: Step) -> Tensor:
    """No vertical motion, no rolling and pitching."""
    vertical = step.state.velocity[:, 2].square()
    tumbling = step.state.angular_velocity[:, :2].norm(dim=-1)
    return (torch.exp(-10 * vertical) + torch.exp(-5 * tumbling)) / 2


@term
def base_acc(step: Step) -> Tensor:
    """Smooth base motion."""
    change = step.last_world_velocity - step.state.world_velocity
    return torch.exp(-3 * change.norm(dim=-1))


@term
def joint_pos(step: Step) -> Tensor:
    """Joints on the reference motion."""
    error = (step.state.q - step.reference).norm(dim=-1)
    return torch.exp(-2 * error) - 0.2 * error.clamp(0, 0.5)


@term
def default_joint_pos(step: Step) -> Tensor:
    """Hip roll and yaw near the default pose, all joints a little."""
    offset = step.state.q - step.default_pose
    legs = sum(offset[:, list(joints)].norm(dim=-1) for joints in step.config.abduction_joints)
    beyond = (torch.as_tensor(legs) - 0.1).clamp(0, 50)
    return torch.exp(-100 * beyond) - 0.01 * offset.norm(dim=-1)


# Feet -------------------------------------------------------------------------------------------


@term
def feet_contact_number(step: Step) -> Tensor:
    """Feet on the ground when the clock says so, and only then."""
    agree = step.contact == step.stance
    return torch.where(agree, 1.0, -0.3).mean(-1)


@term
def feet_distance(step: Step) -> Tensor:
    """Feet neither crossing nor straddling."""
    return _distance_in(step.state.foot_position, step.config.feet_distance)


@term
def knee_distance(step: Step) -> Tensor:
    """Knees neither touching nor bowed."""
    return _distance_in(step.state.knee_position, step.config.knee_distance)


def _distance_in(positions: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Mean over left-right pairs (0, 1), (2, 3), ... of how well the planar distance fits."""
    left, right = positions[:, 0::2, :2], positions[:, 1::2, :2]
    distance = (left - right).norm(dim=-1)
    too_near = (distance - bounds[0]).clamp(-0.5, 0.0).abs()
    too_far = (distance - bounds[1]).clamp(0.0, 0.5)
    return ((torch.exp(-100 * too_near) + torch.exp(-100 * too_far)) / 2).mean(-1)


@term
def feet_contact_forces(step: Step) -> Tensor:
    """Force beyond what walking needs."""
    excess = step.state.foot_force.norm(dim=-1) - step.config.contact_force
    return excess.clamp(0, 400).sum(-1)


@term
def foot_slip(step: Step) -> Tensor:
    """Planar speed of feet on the ground."""
    speed = step.state.foot_velocity[..., :2].norm(dim=-1)
    return (speed.sqrt() * step.contact).sum(-1)


class FeetAirTime:
    """Time that a foot spends in scheduled swing, paid when the swing ends."""

    def __init__(self, num_envs: int, num_feet: int) -> None:
        self.time = torch.zeros(num_envs, num_feet)
        self.last_contact = torch.zeros(num_envs, num_feet, dtype=torch.bool)

    def __call__(self, step: Step) -> Tensor:
        """Pay the time in the air at the first contact."""
        grounded = step.contact | step.stance | self.last_contact
        self.last_contact = step.contact.clone()
        landed = (self.time > 0) & grounded
        self.time = self.time + step.control_dt
        reward = (self.time.clamp(0, 0.5) * landed).sum(-1)
        self.time = self.time * ~grounded
        return reward

    def reset(self, envs: Tensor, foot_height: Tensor) -> None:
        """Start again from the ground."""
        self.time[envs] = 0
        self.last_contact[envs] = False

    def state_dict(self) -> dict[str, Tensor]:
        """Return the memory."""
        return {"time": self.time, "last_contact": self.last_contact}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore the memory."""
        self.time, self.last_contact = state["time"], state["last_contact"]


class FeetClearance:
    """Time that a swinging foot spends within a centimetre of its target height.

    Humanoid-Gym does not reset the heights with the episode, so that the jump back to the start is
    counted as foot motion; here a reset begins at the feet's new height.
    """

    def __init__(self, num_envs: int, num_feet: int) -> None:
        self.height = torch.zeros(num_envs, num_feet)
        self.last = torch.zeros(num_envs, num_feet)

    def __call__(self, step: Step) -> Tensor:
        """Pay every step near the target height."""
        sole = step.state.foot_position[..., 2] - step.config.foot_offset
        self.height = self.height + sole - self.last
        self.last = sole
        near = (self.height - step.config.foot_height).abs() < 0.01
        reward = (near & ~step.stance).sum(-1).float()
        self.height = self.height * ~step.contact
        return reward

    def reset(self, envs: Tensor, foot_height: Tensor) -> None:
        """Measure from where the feet are now."""
        self.height[envs] = 0
        self.last[envs] = foot_height

    def state_dict(self) -> dict[str, Tensor]:
        """Return the memory."""
        return {"height": self.height, "last": self.last}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore the memory."""
        self.height, self.last = state["height"], state["last"]


TERMS["feet_air_time"] = FeetAirTime
TERMS["feet_clearance"] = FeetClearance


# Effort -----------------------------------------------------------------------------------------


@term
def collision(step: Step) -> Tensor:
    """The base touches something."""
    return (step.state.base_force.norm(dim=-1) > 0.1).float()


@term
def action_smoothness(step: Step) -> Tensor:
    """Change and curvature of the applied action, and its size."""
    now, last, before = step.actions
    change = (last - now).square().sum(-1)
    curvature = (now + before - 2 * last).square().sum(-1)
    return change + curvature + 0.05 * now.abs().sum(-1)


@term
def torques(step: Step) -> Tensor:
    """Motor torque."""
    return step.state.torque.square().sum(-1)


@term
def dof_vel(step: Step) -> Tensor:
    """Joint velocity."""
    return step.state.dq.square().sum(-1)


@term
def dof_acc(step: Step) -> Tensor:
    """Joint acceleration."""
    return ((step.last_dq - step.state.dq) / step.control_dt).square().sum(-1)


class Rewards:
    """The weighted sum of the terms that a config names.

    Attributes:
        sums: Weighted reward of each term over the present episode, (terms, N).
    """

    def __init__(self, config: RewardConfig, num_envs: int, num_feet: int) -> None:
        self.config = config
        for name, _ in config.weights:
            check_choice("reward term", name, TERMS)
        self.names = [name for name, _ in config.weights]
        self.terms = {name: TERMS[name](num_envs, num_feet) for name in self.names}
        self.weights = torch.tensor([weight for _, weight in config.weights])
        self.sums = torch.zeros(len(self.names), num_envs)

    def __call__(self, step: Step) -> Tensor:
        """Return the total reward, (N,), never below zero."""
        values = torch.stack([self.terms[name](step) for name in self.names])
        weighted = values * (self.weights * step.control_dt).unsqueeze(-1)
        self.sums += weighted
        return weighted.sum(0).clamp(min=0.0)

    def reset(self, envs: Tensor, foot_height: Tensor) -> dict[str, Tensor]:
        """Forget finished episodes and return the sums of their terms."""
        finished = {name: self.sums[i, envs] for i, name in enumerate(self.names)}
        self.sums[:, envs] = 0
        for name in self.names:
            self.terms[name].reset(envs, foot_height)
        return finished
