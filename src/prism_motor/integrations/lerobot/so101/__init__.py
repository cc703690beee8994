"""The twin of the SO-101 for LeRobot's own commands.

``so101_sim`` is a robot, ``so101_sim_leader`` a scripted teleoperator for it, ``so101_sim`` also a
camera for the emulated bus, ``so101_click`` an environment for ``lerobot-eval``. The distribution
``lerobot_robot_prism_so101`` lets LeRobot find them. From Python::

    from prism_motor.integrations.lerobot.so101 import SO101Sim, SO101SimConfig

    robot = SO101Sim(SO101SimConfig(id="twin"))
    robot.connect()
    robot.place(seed=7)
    robot.send_action({name: 0.0 for name in robot.action_features})
    robot.outcome()["success"]
"""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy
from prism_motor.integrations.lerobot.so101.configuration import (
    SO101SimCameraConfig,
    SO101SimConfig,
    SO101SimLeaderConfig,
)
from prism_motor.integrations.lerobot.so101.environment_config import SO101ClickEnv

if TYPE_CHECKING:
    from prism_motor.integrations.lerobot.so101.camera import SO101SimCamera
    from prism_motor.integrations.lerobot.so101.leader import SO101SimLeader
    from prism_motor.integrations.lerobot.so101.robot import SO101Sim

__all__ = [
    "SO101ClickEnv",
    "SO101Sim",
    "SO101SimCamera",
    "SO101SimCameraConfig",
    "SO101SimConfig",
    "SO101SimLeader",
    "SO101SimLeaderConfig",
]

# LeRobot looks here for the class that belongs to a config; MuJoCo is imported only then.
__getattr__ = lazy(
    __name__, {"SO101Sim": "robot", "SO101SimCamera": "camera", "SO101SimLeader": "leader"}
)
