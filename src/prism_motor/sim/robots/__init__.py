"""Robot models of our own making: primitive geometry, no mesh files."""

from collections.abc import Callable

from prism_motor.nn.checks import check_choice
from prism_motor.sim.robots.g1 import g1
from prism_motor.sim.robots.quadruped import quadruped
from prism_motor.sim.robots.robot import JointSpec, Robot

ROBOTS: dict[str, Callable[[], Robot]] = {"g1": g1, "quadruped": quadruped}
"""Robots by name."""


def make_robot(name: str) -> Robot:
    """Build a robot by name."""
    return ROBOTS[check_choice("robot", name, ROBOTS)]()


__all__ = ["ROBOTS", "JointSpec", "Robot", "make_robot"]
