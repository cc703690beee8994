"""What LeRobot imports to know ``so101_sim``, ``so101_sim_leader`` and ``so101_click``."""

from prism_motor.integrations.lerobot.so101 import (
    SO101ClickEnv,
    SO101SimCameraConfig,
    SO101SimConfig,
    SO101SimLeaderConfig,
)

__all__ = ["SO101ClickEnv", "SO101SimCameraConfig", "SO101SimConfig", "SO101SimLeaderConfig"]
