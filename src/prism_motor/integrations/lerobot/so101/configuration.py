"""Settings of ``so101_sim``, ``so101_sim_leader`` and the camera ``so101_sim``, for LeRobot.

LeRobot imports this module in every command, so it must not import MuJoCo.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from prism_motor._checks import InputError, check_choice
from prism_motor._extras import missing_extra
from prism_motor.integrations.feetech.frames import default_folder

try:
    from lerobot.cameras.configs import CameraConfig
    from lerobot.robots.config import RobotConfig
    from lerobot.teleoperators.config import TeleoperatorConfig
except ImportError as error:
    raise missing_extra("prism_motor.integrations.lerobot.so101", "so101", error) from error

CAMERAS = ("agent", "wrist")
"""The twin's cameras: beside the table and on the gripper."""


def check_between(name: str, value: float, low: float, high: float) -> None:
    """Raise unless a number is in its range."""
    if not low <= value <= high:
        raise InputError(f"{name} must be from {low:g} to {high:g}, got {value}.")


@RobotConfig.register_subclass("so101_sim")
@dataclass(kw_only=True)
class SO101SimConfig(RobotConfig):
    """The twin of the SO-101 as a LeRobot robot."""

    task: str = "mouse-click-v0"
    """What is on the table: mouse-click-v0, press-key-v0 or push-cube-v0."""
    servos: str = "soft"
    """Stiffness of the servos: soft (as measured) or stiff."""
    placement: str = "narrow"
    """Where the thing is put: narrow (the pilot's range) or wide."""
    image_size: int = 96
    """Side of the square images, pixels."""
    camera_names: list[str] = field(default_factory=lambda: list(CAMERAS))
    """Which cameras there are: agent, wrist."""
    fps: int | None = None
    """Commands a second, each of which advances the simulation by 1/fps seconds; default: what the
    command that runs uses, else 30."""
    seed: int = 0
    """Seed of the first placement; later ones follow from it."""
    home_s: float | None = None
    """Simulated seconds at home, after having left it, until the thing is put elsewhere; default:
    0.5, or never where LeRobot saves episodes, which tells that one has ended."""

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        for name in self.camera_names:
            check_choice("camera of so101_sim", name, CAMERAS)
        check_choice("robot.servos", self.servos, ("soft", "stiff"))
        check_choice("robot.placement", self.placement, ("narrow", "wide"))
        check_between("robot.image_size", self.image_size, 16, 1024)
        if self.fps is not None:
            check_between("robot.fps", self.fps, 1, 200)
        check_between("robot.seed", self.seed, 0, 2**31 - 1)
        if self.home_s is not None:
            check_between("robot.home_s", self.home_s, 0, 3600)


@TeleoperatorConfig.register_subclass("so101_sim_leader")
@dataclass(kw_only=True)
class SO101SimLeaderConfig(TeleoperatorConfig):
    """A scripted leader that shows the twin's task, over and over."""

    robot: str | None = None
    """The id of the so101_sim it moves; default: the one there is."""
    rest_s: float | None = None
    """Simulated seconds between two shows; default: until LeRobot has saved an episode."""

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.rest_s is not None:
            check_between("teleop.rest_s", self.rest_s, 0, 3600)


@CameraConfig.register_subclass("so101_sim")
@dataclass(kw_only=True)
class SO101SimCameraConfig(CameraConfig):
    """A camera of the twin behind ``prism so101 bus``, for LeRobot's own so101_follower."""

    name: str = "agent"
    """Which camera: agent or wrist."""
    folder: Path = field(default_factory=default_folder)
    """Where ``prism so101 bus`` puts its pictures."""

    def __post_init__(self) -> None:
        """Check the fields."""
        check_choice("camera of so101_sim", self.name, CAMERAS)
        if self.width != self.height:
            raise InputError(
                f"The twin's pictures are square: give the camera {self.name!r} a width and a "
                f"height that are equal, got {self.width} x {self.height}."
            )
