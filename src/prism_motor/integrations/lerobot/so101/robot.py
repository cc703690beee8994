"""``so101_sim``: the twin of the SO-101 where LeRobot expects a robot."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lerobot.robots.robot import Robot
from lerobot.utils.decorators import check_if_already_connected, check_if_not_connected

from prism_motor.integrations.lerobot.so101.command_line import check_command_line
from prism_motor.integrations.lerobot.so101.configuration import SO101SimConfig
from prism_motor.integrations.lerobot.so101.station import Station, close_station, open_station
from prism_motor.sim.so101.units import FEATURES


class SO101Sim(Robot):
    """The twin: names and units are those of ``so101_follower``, time is simulated.

    Every command advances the simulation by exactly ``1 / fps`` seconds, however long the computer
    takes. An episode begins, with the arm at home and the thing elsewhere, when LeRobot has saved
    one; where it saves none, once the arm has been at home for half a second after having left it.

    Args:
        config: Its settings.
    """

    config_class = SO101SimConfig
    name = "so101_sim"

    def __init__(self, config: SO101SimConfig) -> None:
        super().__init__(config)
        self.config = config
        self.cameras = dict.fromkeys(config.camera_names)
        """LeRobot counts them; the pictures come with the observation."""
        self._station: Station | None = None

    @property
    def observation_features(self) -> dict[str, Any]:
        """Names of joints and cameras, with the shape of pictures."""
        size = self.config.image_size
        return {**self.action_features, **dict.fromkeys(self.cameras, (size, size, 3))}

    @property
    def action_features(self) -> dict[str, type]:
        """Names of the joints."""
        return dict.fromkeys(FEATURES, float)

    @property
    def is_connected(self) -> bool:
        """Whether there is a twin."""
        return self._station is not None

    @property
    def is_calibrated(self) -> bool:
        """Always: the twin's zeros are the middles of its ranges."""
        return True

    @check_if_already_connected
    def connect(self, calibrate: bool = True) -> None:
        """Check what LeRobot was asked to do with this robot, then set the twin up."""
        command = check_command_line(self.config.fps, tuple(self.cameras))
        self._station = open_station(self.config, command)

    def calibrate(self) -> None:
        """Do nothing: there is nothing to calibrate."""

    def configure(self) -> None:
        """Do nothing: the servos are as LeRobot configures them."""

    @check_if_not_connected
    def get_observation(self) -> dict[str, Any]:
        """Return positions (degrees, gripper in percent) and pictures."""
        station = self._there
        station.look()
        positions = station.twin.positions().tolist()
        return {**dict(zip(FEATURES, positions, strict=True)), **station.twin.images()}

    @check_if_not_connected
    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Give the servos targets and advance by one command; return what was sent."""
        return self._there.command(action)

    @check_if_not_connected
    def disconnect(self) -> None:
        """Take the twin down."""
        self._station = None
        close_station(self.config.id)

    @check_if_not_connected
    def place(self, seed: int) -> dict[str, float]:
        """Start an episode: arm at home, thing where the seed says; return its pose."""
        return self._there.operator.place(seed)._asdict()

    @check_if_not_connected
    def outcome(self) -> dict[str, Any]:
        """Return what happened since the thing was placed; ``success`` is the strict criterion."""
        return asdict(self._there.twin.outcome)

    @property
    def _there(self) -> Station:
        assert self._station is not None  # methods check that the robot is connected
        return self._station
