"""Robot models of our own making: primitive geometry, no mesh files."""

from collections.abc import Callable

from prism.nn.checks import check_choice
from prism.sim.robots.g1 import g1
from prism.sim.robots.quadruped import quadruped
from prism.sim.robots.robot import JointSpec, Robot

ROBOTS: dict[str, Callable[[], Robot]] = {"g1": g1, "quadruped": quadruped}
"""Robots by name."""


def make_robot(name: str) -> Robot:
    """Build a robot by name."""
    return ROBOTS[check_choice("robot", name, ROBOTS)]()


__all__ = ["ROBOTS", "JointSpec", "Robot", "make_robot"]
