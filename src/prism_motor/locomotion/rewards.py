"""The weighted sum of reward terms, and the 22 terms of Humanoid-Gym.

A term maps the current step to one value per environment; :class:`Rewards` weights and adds them.
:mod:`prism_motor.locomotion.reward_terms` explains how to write one; its names are exported here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prism_motor._checks import InputError, check_choice
from prism_motor.locomotion.reward_terms import (
    NEEDS,
    TERMS,
    LeggedStep,
    RewardTerm,
    Step,
    norm,
    term,
)

if TYPE_CHECKING:
    from prism_motor.locomotion.task import RewardConfig
    from prism_motor.sim.robots import Robot

CONTACT_FORCE = 5.0
"""Vertical force above which a foot counts as touching the ground, N."""


class Rewards:
    """The weighted sum of the terms that a config names.

    Args:
        config: Weights and parameters.
        robot: The robot.
        num_envs: Number of environments.
        offers: Which of :data:`NEEDS` task and robot meet.
        device: Where rewards are computed.

    Attributes:
        sums: Weighted reward of each term over the current episode, (terms, N).
        terms: The terms by name.
    """

    def __init__(
        self,
        config: RewardConfig,
        robot: Robot,
        num_envs: int,
        offers: Collection[str],
        device: str | torch.device = "cpu",
    ) -> None:
        check_rewards(config, robot, offers)
        self.names = list(config.weights)
        self.terms: dict[str, Callable[[Any], Tensor]] = {}
        for name in self.names:
            made, values = TERMS[name].make, config.parameters.get(name, {})
            if isinstance(made, type):
                self.terms[name] = made(robot, num_envs, **values)
            else:
                self.terms[name] = partial(made, **values) if values else made
        for made in self._with_memory().values():
            made.to(device)
        self.weights = torch.tensor([[weight] for weight in config.weights.values()], device=device)
        self.sums = torch.zeros(len(self.names), num_envs, device=device)

    def __call__(self, step: LeggedStep) -> Tensor:
        """Return the total reward, (N,), never below zero."""
        if not self.names:
            return self.sums.new_zeros(self.sums.shape[1])
        values = torch.stack([self.terms[name](step) for name in self.names])
        weighted = values * (self.weights * step.control_dt)
        self.sums += weighted
        return weighted.sum(0).clamp(min=0.0)

    def reset(self, envs: Tensor, sole_height: Tensor, duration: float = 1.0) -> dict[str, Tensor]:
        """Clear finished episodes and return each term's sum per ``duration``, averaged."""
        # One division: torch takes as long for a number as for all of them.
        finished = (self.sums.index_select(1, envs).mean(1) / duration).unbind()
        self.sums.index_fill_(1, envs, 0.0)
        for made in self._with_memory().values():
            made.reset(envs, sole_height)
        return dict(zip(self.names, finished, strict=True))

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that later rewards depend on."""
        tensors = {"sums": self.sums}
        for name, made in self._with_memory().items():
            tensors |= {f"{name}.{key}": value for key, value in made.state_dict().items()}
        return tensors

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Resume from a saved state."""
        self.sums = tensors["sums"]
        for name, made in self._with_memory().items():
            made.load_state_dict({key: tensors[f"{name}.{key}"] for key in made.memory})

    def _with_memory(self) -> dict[str, RewardTerm]:
        return {name: made for name, made in self.terms.items() if isinstance(made, RewardTerm)}


def check_rewards(config: RewardConfig, robot: Robot, offers: Collection[str]) -> None:
    """Raise on unknown terms and parameters, and on terms that do not fit task and robot."""
    for name in config.weights:
        for need in TERMS[name].needs:
            if need not in offers:
                raise InputError(
                    f"The reward term {name!r} needs {NEEDS[need]}, which {robot.name} with "
                    f"{len(robot.feet)} feet and {len(robot.knees)} knees in this task is not. "
                    f"Remove {name!r} from task.rewards.weights."
                )
    for name, values in config.parameters.items():
        if name not in config.weights:
            raise InputError(
                f"task.rewards.parameters has {name!r}, a term without a weight; there are: "
                f"{', '.join(config.weights) or 'none'}."
            )
        allowed = TERMS[name].parameters
        for parameter in values:
            check_choice(f"parameter of the reward term {name!r}", parameter, allowed)


# Tracking ---------------------------------------------------------------------------------------


@term(needs=("commands",))
def tracking_lin_vel(step: Step, *, sharpness: float = 5.0) -> Tensor:
    """Planar velocity as commanded."""
    return torch.exp(-sharpness * step.planar_error.square())


@term(needs=("commands",))
def tracking_ang_vel(step: Step, *, sharpness: float = 5.0) -> Tensor:
    """Yaw rate as commanded."""
    return torch.exp(-sharpness * step.yaw_error.square())


@term(needs=("commands",))
def track_vel_hard(step: Step) -> Tensor:
    """The same with a sharper peak and a slope that never vanishes."""
    planar, yaw = step.planar_error, step.yaw_error
    return (torch.exp(-10 * planar) + torch.exp(-10 * yaw)) / 2 - 0.2 * (planar + yaw)


@term(needs=("commands",))
def low_speed(step: Step) -> Tensor:
    """Forward speed of the right sign and size."""
    wanted = step.command[:, 0]
    share = step.state.velocity[:, 0] / wanted
    shares, pay = _speed_pay(share.device)
    return pay[torch.bucketize(share, shares)] * (wanted.abs() > 0.1)


@lru_cache(maxsize=8)
def _speed_pay(device: torch.device) -> tuple[Tensor, Tensor]:
    """Return bounds on shares of the commanded speed, and the pay between them.

    It is for going backwards, slower than half, about as fast as commanded, too fast.
    """
    shares, pay = [0.0, 0.5, 1.2], [-2.0, -1.0, 1.2, 0.0]
    return torch.tensor(shares, device=device), torch.tensor(pay, device=device)


# Posture ----------------------------------------------------------------------------------------


@term
def orientation(step: LeggedStep) -> Tensor:
    """Base upright."""
    tilt = step.state.euler[:, :2].abs().sum(-1)
    sideways_gravity = norm(step.state.gravity[:, :2])
    return (torch.exp(-10 * tilt) + torch.exp(-20 * sideways_gravity)) / 2


@term(needs=("gait",))
def base_height(step: Step) -> Tensor:
    """Base at its height above the soles of the stance feet."""
    ground = (step.sole_height * step.stance).sum(-1) / step.stance.sum(-1).clamp(min=1)
    height = step.state.base_position[:, 2] - ground
    return torch.exp(-100 * (height - step.config.base_height).abs())


@term
def vel_mismatch_exp(step: LeggedStep) -> Tensor:
    """No vertical motion, no rolling or pitching."""
    vertical = step.state.velocity[:, 2].square()
    tumbling = norm(step.state.angular_velocity[:, :2])
    return (torch.exp(-10 * vertical) + torch.exp(-5 * tumbling)) / 2


@term
def base_acc(step: LeggedStep) -> Tensor:
    """Smooth base motion."""
    change = step.last_world_velocity - step.state.world_velocity
    return torch.exp(-3 * norm(change))


@term(needs=("gait",))
def joint_pos(step: Step) -> Tensor:
    """Joints on the reference motion."""
    error = norm(step.state.q - step.reference)
    return torch.exp(-2 * error) - 0.2 * error.clamp(0, 0.5)


@term
def default_joint_pos(step: LeggedStep, *, slack: float = 0.1) -> Tensor:
    """Hip roll and yaw near the default pose, within a slack in rad, and weakly all joints."""
    offset = step.state.q - step.default_pose
    legs = _leg_masks(step.config.abduction_joints, len(step.default_pose), offset.device)
    abduction = (offset.square() @ legs).sqrt().sum(-1)
    return torch.exp(-100 * (abduction - slack).clamp(0, 50)) - 0.01 * norm(offset)


@lru_cache(maxsize=8)
def _leg_masks(legs: tuple[tuple[int, ...], ...], joints: int, device: torch.device) -> Tensor:
    """Return (J, legs): one where a joint belongs to a leg."""
    rows = [[float(joint in leg) for leg in legs] for joint in range(joints)]
    return torch.tensor(rows, device=device)


# Feet -------------------------------------------------------------------------------------------


@term(needs=("gait",))
def feet_contact_number(step: Step) -> Tensor:
    """Feet on the ground when the clock says so, and only then."""
    agree = (step.contact == step.stance).float().mean(-1)
    return agree - 0.3 * (1 - agree)


@term(needs=("foot pairs",))
def feet_distance(step: LeggedStep) -> Tensor:
    """Feet neither crossing nor straddling."""
    return _distance_in(step.state.foot_position, step.config.feet_distance)


@term(needs=("knee pairs",))
def knee_distance(step: LeggedStep) -> Tensor:
    """Knees neither touching nor bowed."""
    return _distance_in(step.state.knee_position, step.config.knee_distance)


def _distance_in(positions: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Return how well planar distances fit, mean over left-right pairs (0, 1), (2, 3), ..."""
    left, right = positions.unflatten(1, (-1, 2)).unbind(2)
    distance = norm((left - right)[..., :2])
    outside = (distance - distance.clamp(*bounds)).abs().clamp(max=0.5)
    return (1 + torch.exp(-100 * outside)).mean(-1) / 2


@term
def feet_contact_forces(step: LeggedStep) -> Tensor:
    """Force beyond what walking needs."""
    excess = norm(step.state.foot_force) - step.config.contact_force
    return excess.clamp(0, 400).sum(-1)


@term
def foot_slip(step: LeggedStep) -> Tensor:
    """Planar speed of feet on the ground."""
    speed = norm(step.state.foot_velocity[..., :2])
    return (speed.sqrt() * step.contact).sum(-1)


@term(needs=("gait",))
class FeetAirTime(RewardTerm):
    """Time that a foot spends in scheduled swing, rewarded when the swing ends."""

    memory = ("time", "last_contact")

    def __init__(self, robot: Robot, num_envs: int) -> None:
        super().__init__(robot, num_envs)
        self.time = torch.zeros(num_envs, len(robot.feet))
        self.last_contact = torch.zeros(num_envs, len(robot.feet), dtype=torch.bool)

    def __call__(self, step: Step) -> Tensor:
        """Reward the time in the air at the first contact."""
        grounded = step.contact | step.stance | self.last_contact
        self.last_contact = step.contact
        landed = (self.time > 0) & grounded
        self.time = self.time + step.control_dt
        reward = (self.time.clamp(0, 0.5) * landed).sum(-1)
        self.time = self.time * ~grounded
        return reward


@term(needs=("gait",))
class FeetClearance(RewardTerm):
    """Time that a swinging foot spends within a centimetre of its target height.

    Humanoid-Gym does not reset the heights with the episode, so the jump back to the start counts
    as foot motion; here a reset starts at the feet's new height.
    """

    memory = ("height", "last")

    def __init__(self, robot: Robot, num_envs: int) -> None:
        super().__init__(robot, num_envs)
        self.height = torch.zeros(num_envs, len(robot.feet))
        self.last = torch.zeros(num_envs, len(robot.feet))

    def __call__(self, step: Step) -> Tensor:
        """Reward every step near the target height."""
        self.height = self.height + step.sole_height - self.last
        self.last = step.sole_height
        near = (self.height - step.config.foot_height).abs() < 0.01
        reward = (near & ~step.stance).sum(-1).float()
        self.height = self.height * ~step.contact
        return reward

    def reset(self, envs: Tensor, sole_height: Tensor) -> None:
        """Measure from where the feet are now."""
        super().reset(envs, sole_height)
        self.last = self.last.index_copy(0, envs, sole_height)


# Effort -----------------------------------------------------------------------------------------


@term
def collision(step: LeggedStep) -> Tensor:
    """The base touches something."""
    return (norm(step.state.base_force) > 0.1).float()


@term
def action_smoothness(step: LeggedStep) -> Tensor:
    """Change and curvature of the applied action, and its size."""
    now, last, before = step.actions
    change, curvature = last - now, now + before - 2 * last
    return (change.square() + curvature.square() + 0.05 * now.abs()).sum(-1)


@term
def torques(step: LeggedStep) -> Tensor:
    """Motor torque."""
    return step.state.torque.square().sum(-1)


@term
def dof_vel(step: LeggedStep) -> Tensor:
    """Joint velocity."""
    return step.state.dq.square().sum(-1)


@term
def dof_acc(step: LeggedStep) -> Tensor:
    """Joint acceleration."""
    return ((step.last_dq - step.state.dq) / step.control_dt).square().sum(-1)


TERMS.close()  # terms registered later are the user's
