"""Robot manipulation: suites behind one interface, experts, demonstrations and policies."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import (
        BasicEnvironment,
        Environment,
        Expert,
        NoExpertError,
        Observation,
        Physics,
        Transition,
    )
    from prism_motor.manipulation.rollout import run_episode
    from prism_motor.manipulation.tasks import (
        Suite,
        Task,
        find_suite,
        find_task,
        list_tasks,
        make_environment,
        make_expert,
        register_suite,
    )

__all__ = [
    "BasicEnvironment",
    "Environment",
    "Expert",
    "NoExpertError",
    "Observation",
    "Physics",
    "Suite",
    "Task",
    "Transition",
    "find_suite",
    "find_task",
    "list_tasks",
    "make_environment",
    "make_expert",
    "register_suite",
    "run_episode",
]

_ENVIRONMENT = (
    "BasicEnvironment", "Environment", "Expert", "NoExpertError", "Observation", "Physics",
    "Transition",
)  # fmt: skip
_HOMES = dict.fromkeys(__all__, "tasks") | dict.fromkeys(_ENVIRONMENT, "environment")

__getattr__ = lazy(__name__, _HOMES | {"run_episode": "rollout"})
