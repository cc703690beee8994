"""The reward terms of Humanoid-Gym, one function a term.

A term maps the present step to a value per environment; :class:`Rewards` weighs and adds them.
Terms with memory are classes with ``reset``. Register a new one with :func:`term`, then give it a
weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Protocol

import torch
from torch import Tensor

from prism_motor.locomotion.state import RobotState
from prism_motor.locomotion.task import RewardConfig
from prism_motor.nn.checks import check_choice

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

    @cached_property
    def planar_error(self) -> Tensor:
        """(N,) distance of the planar velocity from the commanded one."""
        return _norm(self.command[:, :2] - self.state.velocity[:, :2])

    @cached_property
    def yaw_error(self) -> Tensor:
        """(N,) distance of the yaw rate from the commanded one."""
        return (self.command[:, 2] - self.state.angular_velocity[:, 2]).abs()

    @cached_property
    def sole_height(self) -> Tensor:
        """(N, F) height of the soles above the ground."""
        return self.state.foot_position[..., 2] - self.config.foot_offset


_norm = partial(torch.linalg.vector_norm, dim=-1)  # half the cost of Tensor.norm


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
    return torch.exp(-5 * step.planar_error.square())


@term
def tracking_ang_vel(step: Step) -> Tensor:
    """Yaw rate as commanded."""
    return torch.exp(-5 * step.yaw_error.square())


@term
def track_vel_hard(step: Step) -> Tensor:
    """The same with a sharper peak and a slope that never ends."""
    planar, yaw = step.planar_error, step.yaw_error
    return (torch.exp(-10 * planar) + torch.exp(-10 * yaw)) / 2 - 0.2 * (planar + yaw)


@term
def low_speed(step: Step) -> Tensor:
    """Forward speed of the right sign and size."""
    wanted = step.command[:, 0]
    share = step.state.velocity[:, 0] / wanted
    return _SPEED_PAY[torch.bucketize(share, _SPEED_SHARES)] * (wanted.abs() > 0.1)


_SPEED_SHARES = torch.tensor([0.0, 0.5, 1.2])
_SPEED_PAY = torch.tensor([-2.0, -1.0, 1.2, 0.0])
"""For going backwards, slower than half, about as fast as wanted, too fast."""


# Posture ----------------------------------------------------------------------------------------


@term
def orientation(step: Step) -> Tensor:
    """Base upright."""
    tilt = step.state.euler[:, :2].abs().sum(-1)
    sideways_gravity = _norm(step.state.gravity[:, :2])
    return (torch.exp(-10 * tilt) + torch.exp(-20 * sideways_gravity)) / 2


@term
def base_height(step: Step) -> Tensor:
    """Base at its height above the soles of the stance feet."""
    ground = (step.sole_height * step.stance).sum(-1) / step.stance.sum(-1).clamp(min=1)
    height = step.state.base_position[:, 2] - ground
    return torch.exp(-100 * (height - step.config.base_height).abs())


@term
def vel_mismatch_exp(step: Step) -> Tensor:
    """No vertical motion, no rolling and pitching."""
    vertical = step.state.velocity[:, 2].square()
    tumbling = _norm(step.state.angular_velocity[:, :2])
    return (torch.exp(-10 * vertical) + torch.exp(-5 * tumbling)) / 2


@term
def base_acc(step: Step) -> Tensor:
    """Smooth base motion."""
    change = step.last_world_velocity - step.state.world_velocity
    return torch.exp(-3 * _norm(change))


@term
def joint_pos(step: Step) -> Tensor:
    """Joints on the reference motion."""
    error = _norm(step.state.q - step.reference)
    return torch.exp(-2 * error) - 0.2 * error.clamp(0, 0.5)


@term
def default_joint_pos(step: Step) -> Tensor:
    """Hip roll and yaw near the default pose, all joints a little."""
    offset = step.state.q - step.default_pose
    legs = _leg_masks(step.config.abduction_joints, len(step.default_pose))
    abduction = (offset.square() @ legs).sqrt().sum(-1)
    return torch.exp(-100 * (abduction - 0.1).clamp(0, 50)) - 0.01 * _norm(offset)


@lru_cache(maxsize=8)
def _leg_masks(legs: tuple[tuple[int, ...], ...], joints: int) -> Tensor:
    """Return (J, legs): one where a joint belongs to a leg."""
    return torch.tensor([[float(joint in leg) for leg in legs] for joint in range(joints)])


# Feet -------------------------------------------------------------------------------------------


@term
def feet_contact_number(step: Step) -> Tensor:
    """Feet on the ground when the clock says so, and only then."""
    agree = (step.contact == step.stance).float().mean(-1)
    return agree - 0.3 * (1 - agree)


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
    left, right = positions.unflatten(1, (-1, 2)).unbind(2)
    distance = _norm((left - right)[..., :2])
    outside = (distance - distance.clamp(*bounds)).abs().clamp(max=0.5)
    return (1 + torch.exp(-100 * outside)).mean(-1) / 2


@term
def feet_contact_forces(step: Step) -> Tensor:
    """Force beyond what walking needs."""
    excess = _norm(step.state.foot_force) - step.config.contact_force
    return excess.clamp(0, 400).sum(-1)


@term
def foot_slip(step: Step) -> Tensor:
    """Planar speed of feet on the ground."""
    speed = _norm(step.state.foot_velocity[..., :2])
    return (speed.sqrt() * step.contact).sum(-1)


class FeetAirTime:
    """Time that a foot spends in scheduled swing, paid when the swing ends."""

    def __init__(self, num_envs: int, num_feet: int) -> None:
        self.time = torch.zeros(num_envs, num_feet)
        self.last_contact = torch.zeros(num_envs, num_feet, dtype=torch.bool)

    def __call__(self, step: Step) -> Tensor:
        """Pay the time in the air at the first contact."""
        grounded = step.contact | step.stance | self.last_contact
        self.last_contact = step.contact
        landed = (self.time > 0) & grounded
        self.time = self.time + step.control_dt
        reward = (self.time.clamp(0, 0.5) * landed).sum(-1)
        self.time = self.time * ~grounded
        return reward

    def reset(self, envs: Tensor, foot_height: Tensor) -> None:
        """Start again from the ground."""
        self.time = self.time.index_fill(0, envs, 0.0)
        self.last_contact = self.last_contact.index_fill(0, envs, False)

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
        self.height = self.height + step.sole_height - self.last
        self.last = step.sole_height
        near = (self.height - step.config.foot_height).abs() < 0.01
        reward = (near & ~step.stance).sum(-1).float()
        self.height = self.height * ~step.contact
        return reward

    def reset(self, envs: Tensor, foot_height: Tensor) -> None:
        """Measure from where the feet are now."""
        self.height = self.height.index_fill(0, envs, 0.0)
        self.last = self.last.index_copy(0, envs, foot_height)

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
    return (_norm(step.state.base_force) > 0.1).float()


@term
def action_smoothness(step: Step) -> Tensor:
    """Change and curvature of the applied action, and its size."""
    now, last, before = step.actions
    change, curvature = last - now, now + before - 2 * last
    return (change.square() + curvature.square() + 0.05 * now.abs()).sum(-1)


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
        self.weights = torch.tensor([[weight] for _, weight in config.weights])
        self.sums = torch.zeros(len(self.names), num_envs)

    def __call__(self, step: Step) -> Tensor:
        """Return the total reward, (N,), never below zero."""
        values = torch.stack([self.terms[name](step) for name in self.names])
        weighted = values * (self.weights * step.control_dt)
        self.sums += weighted
        return weighted.sum(0).clamp(min=0.0)

    def reset(self, envs: Tensor, foot_height: Tensor) -> dict[str, float]:
        """Forget finished episodes and return the sum of each term, mean over them."""
        finished = self.sums.index_select(1, envs).mean(1).tolist()
        self.sums.index_fill_(1, envs, 0.0)
        for name in self.names:
            self.terms[name].reset(envs, foot_height)
        return dict(zip(self.names, finished, strict=True))
