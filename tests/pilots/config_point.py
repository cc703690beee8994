"""Robots of type ``point_sim`` and ``point_arm``: a point that moves over a square."""

from dataclasses import dataclass

from lerobot.robots import RobotConfig


@dataclass
class PointFields:
    use_degrees: bool = False
    size: int = 32
    """Sides of the camera's image."""
    port: str = ""
    """A file that must exist, if it is given."""
    fails_at: int = 0
    """Observation at which the connection is lost; 0: never."""
    pause: float = 0.0
    """Seconds that an observation takes."""
    calibrated: bool = True


@RobotConfig.register_subclass("point_arm")
@dataclass
class PointArmConfig(RobotConfig, PointFields):
    """It neither places things nor judges, like hardware."""


@RobotConfig.register_subclass("point_sim")
@dataclass
class PointSimConfig(RobotConfig, PointFields):
    """It places its target and knows whether it was reached."""
