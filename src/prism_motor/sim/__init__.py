"""Robots, built in or from any MJCF file, and batched stepping with MuJoCo."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.sim.dynamics import Dynamics
    from prism_motor.sim.engine import RolloutEngine
    from prism_motor.sim.robots import ROBOTS, JointSpec, Robot, make_robot, register_robot
    from prism_motor.sim.scene import build_model, scene_xml

__all__ = [
    "ROBOTS",
    "Dynamics",
    "JointSpec",
    "Robot",
    "RolloutEngine",
    "build_model",
    "make_robot",
    "register_robot",
    "scene_xml",
]

__getattr__ = lazy(
    __name__,
    {
        "ROBOTS": "robots",
        "Dynamics": "dynamics",
        "JointSpec": "robots",
        "Robot": "robots",
        "RolloutEngine": "engine",
        "build_model": "scene",
        "make_robot": "robots",
        "register_robot": "robots",
        "scene_xml": "scene",
    },
)
