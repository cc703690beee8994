"""Robots with legs: tasks, observations, rewards, randomisation, PPO, evaluation, export."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.locomotion.conditions import CONDITIONS
    from prism_motor.locomotion.config import LocomotionConfig, PPOConfig, WalkingEvaluation
    from prism_motor.locomotion.env import VelocityEnv, make_env
    from prism_motor.locomotion.evaluation import WalkingEpisode
    from prism_motor.locomotion.legged import LeggedEnv
    from prism_motor.locomotion.observations import FRAME, LEGGED_FRAME, Block
    from prism_motor.locomotion.policy import WalkingPolicy, load_policy
    from prism_motor.locomotion.presets import PRESETS, make_config
    from prism_motor.locomotion.rewards import LeggedStep, RewardTerm, Step, term
    from prism_motor.locomotion.task import (
        ActionConfig,
        CommandConfig,
        GaitConfig,
        LeggedTaskConfig,
        ObservationConfig,
        RandomisationConfig,
        RewardConfig,
        SimulationConfig,
        TaskConfig,
        TerminationConfig,
        register_task_kind,
    )
    from prism_motor.locomotion.tasks import TASKS, register_task, robot_settings, velocity_task

__all__ = [
    "CONDITIONS",
    "FRAME",
    "LEGGED_FRAME",
    "PRESETS",
    "TASKS",
    "ActionConfig",
    "Block",
    "CommandConfig",
    "GaitConfig",
    "LeggedEnv",
    "LeggedStep",
    "LeggedTaskConfig",
    "LocomotionConfig",
    "ObservationConfig",
    "PPOConfig",
    "RandomisationConfig",
    "RewardConfig",
    "RewardTerm",
    "SimulationConfig",
    "Step",
    "TaskConfig",
    "TerminationConfig",
    "VelocityEnv",
    "WalkingEpisode",
    "WalkingEvaluation",
    "WalkingPolicy",
    "load_policy",
    "make_config",
    "make_env",
    "register_task",
    "register_task_kind",
    "robot_settings",
    "term",
    "velocity_task",
]

# Most of these need torch, which the command line imports as late as it can.
__getattr__ = lazy(
    __name__,
    {
        "ActionConfig": "task",
        "Block": "observations",
        "CONDITIONS": "conditions",
        "CommandConfig": "task",
        "FRAME": "observations",
        "GaitConfig": "task",
        "LEGGED_FRAME": "observations",
        "LeggedEnv": "legged",
        "LeggedStep": "rewards",
        "LeggedTaskConfig": "task",
        "LocomotionConfig": "config",
        "ObservationConfig": "task",
        "PPOConfig": "config",
        "PRESETS": "presets",
        "WalkingPolicy": "policy",
        "RandomisationConfig": "task",
        "RewardConfig": "task",
        "RewardTerm": "rewards",
        "SimulationConfig": "task",
        "Step": "rewards",
        "TASKS": "tasks",
        "TaskConfig": "task",
        "TerminationConfig": "task",
        "VelocityEnv": "env",
        "WalkingEpisode": "evaluation",
        "WalkingEvaluation": "config",
        "load_policy": "policy",
        "make_config": "presets",
        "make_env": "env",
        "register_task": "tasks",
        "register_task_kind": "task",
        "robot_settings": "tasks",
        "term": "rewards",
        "velocity_task": "tasks",
    },
)
