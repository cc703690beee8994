"""Robots by name: built-in ones of primitive geometry, and those that users register."""

import functools
from collections.abc import Callable

from prism_motor._checks import InputError
from prism_motor._registry import Registry
from prism_motor.sim.robots.g1 import g1
from prism_motor.sim.robots.g1_29 import g1_29, g1_29_soft_waist
from prism_motor.sim.robots.quadruped import quadruped
from prism_motor.sim.robots.robot import JointSpec, Robot

ROBOTS: Registry[Callable[[], Robot]] = Registry(
    "robot",
    {
        "g1": g1,
        "g1-29": g1_29,
        "g1-29-soft-waist": g1_29_soft_waist,
        "quadruped": quadruped,
    },
)
"""Functions that build robots, by name."""


def make_robot(name: str) -> Robot:
    """Build a robot by name."""
    robot = _build(ROBOTS[name])
    if robot.name != name:
        raise InputError(
            f"The robot registered as {name!r} is named {robot.name!r}; use the same name."
        )
    return robot


@functools.cache  # meshes take seconds to read
def _build(factory: Callable[[], Robot]) -> Robot:
    return factory()


def register_robot(name: str, factory: Callable[[], Robot]) -> None:
    """Register your own robot under a name.

    Args:
        name: The name that tasks use.
        factory: Builds it; called in every process that needs the robot.
    """
    ROBOTS.register(name, factory)


__all__ = ["ROBOTS", "JointSpec", "Robot", "make_robot", "register_robot"]
