"""Evaluation of a policy by the balanced protocol: the first episodes of every environment.

Counting "the first 200 episodes to end" would over-count early falls. Here every environment
contributes the same number of episodes, however long they take; later ones are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor

from prism_motor._checks import EvaluationError, InputError
from prism_motor._ranges import Checked, between
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.env import VelocityEnv, make_env
from prism_motor.locomotion.gait import GaitMeter

if TYPE_CHECKING:
    from prism_motor.locomotion.legged import LeggedEnv
    from prism_motor.locomotion.task import LeggedTaskConfig

ActionFunction = Callable[[Tensor], Tensor]
"""Observations (N, observations) to actions (N, joints)."""


@dataclass(frozen=True)
class Protocol(Checked, section="evaluation"):
    """How much is evaluated."""

    envs: Annotated[int, between(1, 1_000_000)] = 100
    """Environments."""
    episodes: Annotated[int, between(1, 100_000)] = 2
    """Episodes per environment, the first ones."""


@dataclass(frozen=True)
class WalkingEpisode:
    """Record of one episode; errors are means over its steps, all before the reset."""

    KEY: ClassVar = ("environment", "episode")
    """Fields that identify it within an evaluation."""

    condition: str
    """Name of the condition."""
    evaluation_seed: int
    """Seed of the environments."""
    environment: int
    """Which environment, from 0."""
    episode: int
    """Which episode of that environment, from 0."""
    steps: int
    """Length in control steps; a full episode ends with the first step past its duration."""
    seconds: float
    """Length, s."""
    survived: bool
    """Whether it lasted to the time-out."""
    episode_return: float
    """Sum of rewards."""
    linear_error: float | None
    """Norm of the planar velocity error, m/s; None in a task without commands."""
    yaw_error: float | None
    """Absolute error of the yaw rate, rad/s; None in a task without commands."""
    swing_apex: float | None
    """Peak height of a foot above its last contact, mean over swings, m; None without any."""
    double_support: float
    """Fraction of time with all feet on the ground."""
    speed_ratio: float | None
    """Speed in the commanded direction per commanded speed; None if no motion was commanded."""
    touchdowns: float
    """Touchdowns per second and foot."""


def evaluate(
    policy: ActionFunction,
    task: LeggedTaskConfig,
    condition: str,
    *,
    seed: int,
    protocol: Protocol | None = None,
    threads: int = 1,
    report: Callable[[], None] | None = None,
) -> list[WalkingEpisode]:
    """Run a policy under a condition and return its episodes by environment.

    Args:
        policy: The policy; it should return the mean action, not samples.
        task: The task that it was trained on.
        condition: Name of a condition in :data:`prism_motor.locomotion.conditions.CONDITIONS`.
        seed: Seed of initial states, commands and everything else random.
        protocol: How many environments and episodes.
        threads: Threads of the simulation; they do not change the result.
        report: Called after every control step.
    """
    protocol = protocol or Protocol()
    changed = find_condition(condition).apply(task)
    env = make_env(changed, protocol.envs, seed=seed, threads=threads)
    meter = _EpisodeMeter(env)
    count = torch.zeros(protocol.envs, dtype=torch.long)
    episodes: list[WalkingEpisode] = []
    with torch.inference_mode():
        while bool((count < protocol.episodes).any()):
            actions = policy(env.get_observations()["policy"])
            check_actions(actions, env)
            _, rewards, done, _ = env.step(actions)
            _check_finite("reward", rewards, env)
            meter.update(rewards)
            # Only the first episodes of an environment count; afterwards it is no longer stepped.
            ended = done.nonzero().squeeze(-1)
            if len(ended):
                counted = ended[count[ended] < protocol.episodes]
                rows = meter.read(counted, survived=env.timed_out & ~env.terminated)
                for index, row in zip(counted.tolist(), rows, strict=True):
                    episodes.append(
                        WalkingEpisode(condition, seed, index, int(count[index]), **row)
                    )
                meter.reset(ended)
                count[ended] += 1
                env.engine.rest((count >= protocol.episodes).nonzero().squeeze(-1).numpy())
            if report is not None:
                report()
    return sorted(episodes, key=lambda one: (one.environment, one.episode))


class _EpisodeMeter:
    """Sums over the current episode of every environment."""

    def __init__(self, env: LeggedEnv) -> None:
        self.env = env
        self.gait = GaitMeter(env.num_envs, len(env.robot.feet))
        names = ["episode_return"]
        if isinstance(env, VelocityEnv):
            names += ["linear_error", "yaw_error", "speed", "commanded_speed"]
        # Doubles: a full episode has thousands of steps.
        self.sums = {n: torch.zeros(env.num_envs, dtype=torch.double) for n in names}

    def update(self, rewards: Tensor) -> None:
        """Add the last control step; the state is from before any reset."""
        step = self.env.last_step
        self.gait.update(step.contact, step.state.foot_position[..., 2])
        self.sums["episode_return"] += rewards
        if isinstance(self.env, VelocityEnv):
            velocity, command = step.state.velocity[:, :2], step.command[:, :2]
            # Commands inside the dead band are zero, so they have no direction and add nothing.
            wanted = command.norm(dim=-1)
            along = (velocity * command).sum(-1) / wanted.clamp(min=1e-9)
            errors = self.env.measure()
            self.sums["linear_error"] += errors["linear_error"]
            self.sums["yaw_error"] += errors["yaw_error"]
            self.sums["speed"] += along
            self.sums["commanded_speed"] += wanted

    def read(self, envs: Tensor, survived: Tensor) -> list[dict[str, Any]]:
        """Return the measurements of some environments."""
        steps, sums = self.gait.steps, self.sums
        none = torch.full_like(sums["episode_return"], torch.nan)
        columns = {
            "steps": steps,
            "seconds": steps.double() * self.env.control_dt,
            "survived": survived,
            "episode_return": sums["episode_return"],
            "linear_error": sums.get("linear_error", none) / steps,
            "yaw_error": sums.get("yaw_error", none) / steps,
            "swing_apex": self.gait.swing_apex(),
            "double_support": self.gait.double_support(),
            "speed_ratio": sums.get("speed", none) / sums.get("commanded_speed", none),
            "touchdowns": self.gait.touchdowns(self.env.control_dt),
        }
        values = [[_or_none(v) for v in column[envs].tolist()] for column in columns.values()]
        return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]

    def reset(self, envs: Tensor) -> None:
        """Start new episodes in some environments."""
        self.gait.reset(envs)
        for values in self.sums.values():
            values[envs] = 0.0


def _or_none(value: float) -> float | None:
    """Return ``None`` for NaN: 0 / 0 swings or commands."""
    return value if value == value else None


def check_actions(actions: Tensor, env: LeggedEnv) -> None:
    """Raise if actions have the wrong shape or values that are not finite."""
    expected = (env.num_envs, env.num_actions)
    if tuple(actions.shape) != expected:
        raise InputError(
            f"The policy returned actions of shape {tuple(actions.shape)}; "
            f"{env.num_envs} environments of {env.robot.name} need {expected}."
        )
    _check_finite("action", actions, env)


def _check_finite(what: str, values: Tensor, env: LeggedEnv) -> None:
    # A robot in a state that is not finite never falls, so it would count as a survivor.
    if not torch.isfinite(values).all():
        index = int((~torch.isfinite(values)).nonzero()[0, 0])
        raise EvaluationError(
            f"After {env.total_steps} steps the {what} of environment {index} is not finite. "
            "Either the policy's weights or the simulation diverged; evaluate another checkpoint."
        )
