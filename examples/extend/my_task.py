"""Your own task, with its own observations and rewards: hop in place, to a rhythm."""

import math
from dataclasses import dataclass

import my_robot  # noqa: F401 - registers the hopper
import torch

from prism_motor.locomotion import LEGGED_FRAME, Block, LeggedEnv, LeggedTaskConfig, term
from prism_motor.locomotion.task import register_task_kind
from prism_motor.locomotion.tasks import register_task, robot_settings


@dataclass(frozen=True)
class HopTask(LeggedTaskConfig):
    kind: str = "hop"
    period: float = 0.6  # time per hop, s


def rhythm(env) -> torch.Tensor:
    phase = 2 * math.pi * env.episode_length_buf * env.control_dt / env.cfg.period
    return torch.stack([torch.sin(phase), torch.cos(phase)], dim=-1)


class HopEnv(LeggedEnv):
    config_type = HopTask
    blocks = (*LEGGED_FRAME, Block("rhythm", ("beat_sin", "beat_cos"), rhythm, mirror=(1, 1)))


@term
def hop(step, *, height=0.08):
    """Pay for the sole's height above the ground, m, up to a limit."""
    return step.sole_height.amin(-1).clamp(0, height) / height


register_task_kind("hop", HopEnv)
weights = {"hop": 4.0, "orientation": 1.0, "base_acc": 0.2, "torques": -1e-4, "dof_vel": -1e-3}
register_task("hopper-hop", HopTask(**robot_settings("hopper", weights)))
