"""``so101_sim_leader``: a scripted leader arm, for recordings without anybody."""

from __future__ import annotations

from typing import Any

from lerobot.teleoperators.teleoperator import Teleoperator
from lerobot.utils.decorators import check_if_already_connected, check_if_not_connected

from prism_motor.integrations.lerobot.so101.configuration import SO101SimLeaderConfig
from prism_motor.integrations.lerobot.so101.station import Station, find_station
from prism_motor.sim.so101.leaders import Leader, make_leader
from prism_motor.sim.so101.twin import FRAME, HOME
from prism_motor.sim.so101.units import FEATURES


class SO101SimLeader(Teleoperator):
    """Shows the task of a ``so101_sim`` in the same process, then waits at home.

    It begins again when LeRobot has paused to save the episode, or after ``config.rest_s``.

    Args:
        config: Its settings.
    """

    config_class = SO101SimLeaderConfig
    name = "so101_sim_leader"

    def __init__(self, config: SO101SimLeaderConfig) -> None:
        super().__init__(config)
        self.config = config
        self._connected = False
        self._leader: Leader | None = None
        self._pauses = self._placements = 0
        self._rested = self._due = 0.0
        self._targets = HOME

    @property
    def action_features(self) -> dict[str, type]:
        """Names of the joints."""
        return dict.fromkeys(FEATURES, float)

    @property
    def feedback_features(self) -> dict[str, type]:
        """Nothing: the leader feels nothing."""
        return {}

    @property
    def is_connected(self) -> bool:
        """Whether it was connected."""
        return self._connected

    @property
    def is_calibrated(self) -> bool:
        """Always: there is nothing to calibrate."""
        return True

    @check_if_already_connected
    def connect(self, calibrate: bool = True) -> None:
        """Be ready; the robot may be connected later."""
        self._connected = True

    def calibrate(self) -> None:
        """Do nothing: there is nothing to calibrate."""

    def configure(self) -> None:
        """Do nothing: there is nothing to configure."""

    @check_if_not_connected
    def get_action(self) -> dict[str, float]:
        """Return the next targets."""
        station = find_station(self.config.robot)
        if self._leader is None or self._leader.twin is not station.twin:
            self._leader = make_leader(station.twin)
            self._placements = station.operator.placements
        elif self._may_begin(station):
            self._leader.reset()
            self._placements = station.operator.placements
        if self._leader.done:
            self._rested += station.seconds
        else:
            self._pauses, self._rested = station.pauses, 0.0
        # Leaders count in frames, whatever the rate of the commands is.
        self._due += station.seconds
        while self._due >= FRAME - 1e-9:
            self._due -= FRAME
            self._targets = self._leader.act()
        return dict(zip(FEATURES, self._targets.tolist(), strict=True))

    def send_feedback(self, feedback: dict[str, Any]) -> None:
        """Do nothing: the leader feels nothing."""

    @check_if_not_connected
    def disconnect(self) -> None:
        """Let go."""
        self._connected = False
        self._leader = None

    def _may_begin(self, station: Station) -> bool:
        assert self._leader is not None
        if not self._leader.done:  # unless the thing was put elsewhere in the middle of it
            return station.operator.placements != self._placements
        rested = self.config.rest_s is not None and self._rested >= self.config.rest_s
        return station.pauses != self._pauses or rested
