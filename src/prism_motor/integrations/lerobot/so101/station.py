"""The twins of this process, which ``so101_sim`` and ``so101_sim_leader`` share by the robot's id.

LeRobot tells a robot nothing about episodes. That one has ended shows, though: LeRobot saves it,
and neither looks nor commands for a while.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

from prism_motor._checks import InputError
from prism_motor.integrations.lerobot.so101.command_line import LeRobotCommand
from prism_motor.integrations.lerobot.so101.configuration import SO101SimConfig
from prism_motor.sim.so101.operator import Operator
from prism_motor.sim.so101.twin import Twin
from prism_motor.sim.so101.units import FEATURES

PAUSE = 0.6
"""Seconds between a command and the next look that are no part of an episode."""
EXPECTED_PAUSE = 0.1
"""The same once an episode must be over."""
_OVER = 0.9
"""Share of an episode's time after which it may be over."""
AT_HOME = 0.5
"""Simulated seconds at home after which the thing is put elsewhere, where nothing is saved."""


class Station:
    """A twin, who puts things on its table, and when LeRobot paused.

    Args:
        config: Of the robot.
        command: What LeRobot does with it.
        clock: Seconds that pass in the world, not in the simulation.
    """

    def __init__(
        self,
        config: SO101SimConfig,
        command: LeRobotCommand,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.seconds = 1 / command.fps
        """Simulated time of a command."""
        self._episode, self._clock = command.episode_seconds, clock
        self.twin = Twin(
            config.task,
            servos=config.servos,
            placement=config.placement,
            cameras=config.camera_names,
            camera_size=config.image_size,
        )
        patience = config.home_s
        if patience is None:
            patience = AT_HOME if self._episode is None else math.inf
        self.operator = Operator(self.twin, config.seed, patience)
        self.pauses = 0
        """How often LeRobot paused."""
        self._commanded: float | None = None
        self._began = clock()

    def look(self) -> None:
        """Notice a pause between a command and this look; the operator uses it.

        A policy that takes long to answer is none: it thinks between a look and a command.
        """
        now = self._clock()
        over = self._episode is not None and now - self._began >= _OVER * self._episode
        shortest = EXPECTED_PAUSE if over else PAUSE
        if self._commanded is not None and now - self._commanded > shortest:
            self._commanded, self._began = None, now
            self.pauses += 1
            self.operator.pause()

    def command(self, action: Mapping[str, float]) -> dict[str, float]:
        """Advance the twin by one command; return what was sent."""
        sent = check_action(action)
        self.twin.step([sent[name] for name in FEATURES], seconds=self.seconds)
        self.operator.watch(self.seconds)
        self._commanded = self._clock()
        return sent


def check_action(action: Mapping[str, float]) -> dict[str, float]:
    """Return a command in the joints' order, or raise if it is another robot's."""
    if set(action) != set(FEATURES):
        raise InputError(
            f"The SO-101 is commanded with {', '.join(FEATURES)}, got "
            f"{', '.join(map(str, action)) or 'nothing'}: this is another robot's policy, leader "
            "or dataset."
        )
    return {name: float(action[name]) for name in FEATURES}


_STATIONS: dict[str | None, Station] = {}


def open_station(config: SO101SimConfig, command: LeRobotCommand) -> Station:
    """Set a twin up under the id of its robot."""
    if config.id in _STATIONS:
        raise InputError(
            f"There is already a so101_sim called {config.id!r} in this process. Disconnect it, "
            "or give this one another --robot.id."
        )
    _STATIONS[config.id] = Station(config, command)
    return _STATIONS[config.id]


def close_station(name: str | None) -> None:
    """Take a twin down."""
    station = _STATIONS.pop(name, None)
    if station is not None:
        station.twin.close()


def find_station(name: str | None) -> Station:
    """Return the twin of a robot's id; without one, the only twin there is."""
    if name is None and len(_STATIONS) == 1:
        return next(iter(_STATIONS.values()))
    if name is not None and name in _STATIONS:
        return _STATIONS[name]
    there = ", ".join(map(str, _STATIONS)) or "none"
    raise InputError(
        f"so101_sim_leader moves a so101_sim of the same process, and {name or 'one'} is not "
        f"connected (connected: {there}). Use --robot.type=so101_sim, with --teleop.robot equal "
        "to --robot.id."
    )
