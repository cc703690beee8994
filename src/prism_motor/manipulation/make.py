"""Environments and experts by task; a suite's packages are imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prism_motor._errors import InputError
from prism_motor.manipulation.environment import Environment
from prism_motor.manipulation.expert import Expert
from prism_motor.manipulation.tasks import Task


def make_environment(
    task: Task,
    *,
    cameras: Sequence[str] | None = None,
    image_size: int = 128,
    seed: int = 0,
    stiffness: float | None = None,
) -> Environment:
    """Build the environment of a task.

    Args:
        task: Which task, from :func:`prism_motor.manipulation.tasks.find_task`.
        cameras: Which cameras are drawn; default: the suite's two.
        image_size: Side of the square images, pixels.
        seed: Seed of resets that are given none.
        stiffness: Kp of the arm's controller; default: the suite's own. Only LIBERO has one.
    """
    options: dict[str, Any] = {} if cameras is None else {"cameras": tuple(cameras)}
    if task.suite == "metaworld":
        if stiffness is not None:
            raise InputError(
                f"Meta-World's arm hangs on a mocap body, which has no stiffness; got {stiffness}."
            )
        from prism_motor.manipulation.suites.metaworld.environment import MetaWorldEnvironment

        return MetaWorldEnvironment(task, image_size=image_size, seed=seed, **options)
    from prism_motor.manipulation.suites.libero.environment import LiberoEnvironment

    options |= {} if stiffness is None else {"stiffness": stiffness}
    return LiberoEnvironment(task, image_size=image_size, seed=seed, **options)


def make_expert(environment: Environment) -> Expert:
    """Build the scripted expert that acts in an environment and looks into it."""
    if environment.task.suite == "metaworld":
        from prism_motor.manipulation.suites.metaworld.environment import MetaWorldEnvironment
        from prism_motor.manipulation.suites.metaworld.expert import MetaWorldExpert

        assert isinstance(environment, MetaWorldEnvironment)
        return MetaWorldExpert(environment)
    from prism_motor.manipulation.suites.libero.environment import LiberoEnvironment
    from prism_motor.manipulation.suites.libero.experts import LiberoExpert

    assert isinstance(environment, LiberoEnvironment)
    return LiberoExpert(environment)
