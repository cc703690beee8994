"""Legged robots that learn to walk: tasks, rewards, PPO, evaluation."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.locomotion.conditions import CONDITIONS
    from prism_motor.locomotion.config import LocomotionConfig, PPOConfig, WalkingEvaluation
    from prism_motor.locomotion.domain import LOCOMOTION
    from prism_motor.locomotion.env import VelocityEnv, make_env
    from prism_motor.locomotion.evaluation import WalkingEpisode, evaluate
    from prism_motor.locomotion.legged import LeggedEnv
    from prism_motor.locomotion.observations import FRAME, LEGGED_FRAME, Block
    from prism_motor.locomotion.policy import WalkingPolicy, load_policy
    from prism_motor.locomotion.presets import PRESETS, make_config
    from prism_motor.locomotion.reward_terms import RewardTerm, term
    from prism_motor.locomotion.task import LeggedTaskConfig, TaskConfig, register_task_kind
    from prism_motor.locomotion.tasks import TASKS, register_task, robot_settings, velocity_task

__all__ = [
    "CONDITIONS",
    "FRAME",
    "LEGGED_FRAME",
    "LOCOMOTION",
    "PRESETS",
    "TASKS",
    "Block",
    "LeggedEnv",
    "LeggedTaskConfig",
    "LocomotionConfig",
    "PPOConfig",
    "RewardTerm",
    "TaskConfig",
    "VelocityEnv",
    "WalkingEpisode",
    "WalkingEvaluation",
    "WalkingPolicy",
    "evaluate",
    "load_policy",
    "make_config",
    "make_env",
    "register_task",
    "register_task_kind",
    "robot_settings",
    "term",
    "velocity_task",
]

__getattr__ = lazy(
    __name__,
    {
        "CONDITIONS": "conditions",
        "FRAME": "observations",
        "LEGGED_FRAME": "observations",
        "LOCOMOTION": "domain",
        "PRESETS": "presets",
        "TASKS": "tasks",
        "Block": "observations",
        "LeggedEnv": "legged",
        "LeggedTaskConfig": "task",
        "LocomotionConfig": "config",
        "PPOConfig": "config",
        "RewardTerm": "reward_terms",
        "TaskConfig": "task",
        "VelocityEnv": "env",
        "WalkingEpisode": "evaluation",
        "WalkingEvaluation": "config",
        "WalkingPolicy": "policy",
        "evaluate": "evaluation",
        "load_policy": "policy",
        "make_config": "presets",
        "make_env": "env",
        "register_task": "tasks",
        "register_task_kind": "task",
        "robot_settings": "tasks",
        "term": "reward_terms",
        "velocity_task": "tasks",
    },
)
