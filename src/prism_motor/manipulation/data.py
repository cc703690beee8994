"""The demonstrations of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prism_motor.manipulation.demonstrations.cache import Demonstrations, load_demonstrations
from prism_motor.manipulation.diffusion.network import make_policy_config
from prism_motor.manipulation.tasks import find_task, make_environment

if TYPE_CHECKING:
    from prism_motor.manipulation.config import ManipulationConfig
    from prism_motor.manipulation.environment import Environment


def environment_of(config: ManipulationConfig, stiffness: float | None = None) -> Environment:
    """Build the environment of a run's task, with the cameras of its policy.

    Args:
        config: The run.
        stiffness: Kp of the arm's controller; default: the suite's.
    """
    task = find_task(config.task.suite, config.task.name)
    size = config.network.image_size
    return make_environment(task, cameras=config.task.cameras, image_size=size, stiffness=stiffness)


def load_for(config: ManipulationConfig) -> Demonstrations:
    """Check the settings of a run and read its demonstrations into memory."""
    make_policy_config(config)  # check first: reading may take minutes
    environment = environment_of(config)
    try:
        images = config.network.inputs == "images"
        return load_demonstrations(
            config.demos,
            environment,
            images=images,
            objects=not images,
            episodes=config.episodes,
        )
    finally:
        environment.close()
