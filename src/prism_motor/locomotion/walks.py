"""States of one robot that walks under a held command."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from prism_motor._checks import InputError
from prism_motor.locomotion.commands import HeldCommands
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.evaluation import check_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prism_motor.locomotion.policy import WalkingPolicy


@torch.inference_mode()
def record_walk(
    policy: WalkingPolicy, command: Sequence[float], *, seconds: float, seed: int = 0
) -> tuple[np.ndarray, float]:
    """Let a policy walk by its mean action, without disturbances.

    Args:
        policy: A policy of a velocity task.
        command: Forward and sideways velocity (m/s) and yaw rate (rad/s).
        seconds: How long.
        seed: Seed of the initial state.

    Returns:
        States (T, 7 + joints) at control steps, and control steps per second.
    """
    task = find_condition("nominal").apply(policy.config.task)
    limits = replace(task.terminations, duration=seconds + 1.0)
    env = VelocityEnv(replace(task, terminations=limits), 1, seed=seed)
    env.commands = HeldCommands(env.commands, command)
    env.reset()
    states = [env.engine.qpos[0].copy()]
    for step in range(round(seconds / env.control_dt)):
        actions = policy(env.get_observations()["policy"])
        check_actions(actions, env)
        env.step(actions)
        if env.terminated[0]:
            raise InputError(
                f"The robot fell after {step * env.control_dt:.1f} s under the command "
                f"{tuple(command)}. Give another policy or another --seed."
            )
        states.append(env.engine.qpos[0].copy())
    return np.array(states), 1 / env.control_dt
