"""When an episode ends, which LeRobot does not tell."""

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

from prism_motor._checks import InputError
from prism_motor.integrations.lerobot.so101 import SO101SimConfig
from prism_motor.integrations.lerobot.so101.command_line import LeRobotCommand
from prism_motor.integrations.lerobot.so101.station import (
    EXPECTED_PAUSE,
    PAUSE,
    Station,
    find_station,
)
from prism_motor.sim.so101.twin import HOME
from prism_motor.sim.so101.units import FEATURES


class World:
    """A clock, and a station that is looked at and commanded as LeRobot does it."""

    def __init__(self, command=None, **fields):
        self.now = 100.0
        self.station = Station(
            SO101SimConfig(**fields), command or LeRobotCommand(), lambda: self.now
        )

    def run(self, frames, lift=HOME[1]):
        """Command for some frames; return how often the thing was put somewhere."""
        for _ in range(frames):
            self.station.look()
            action = dict(zip(FEATURES, HOME.tolist(), strict=True))
            self.station.command({**action, "shoulder_lift.pos": lift})
            self.now += 1 / 30
        return self.station.operator.placements


def test_half_a_second_at_home_after_having_left_it():
    world = World()
    assert world.run(60) == 1  # never left
    assert world.run(30, lift=-30) == 1
    assert world.run(8) == 1  # on the way back, and not for long enough
    assert world.run(30) == 2
    assert world.run(60) == 2


def test_coming_by_home_is_not_enough():
    world = World()
    world.run(20, lift=-30)
    world.run(15)
    assert world.run(20, lift=-30) == 1


def test_a_saved_episode_ends_it_wherever_the_arm_is():
    world = World(LeRobotCommand(episode_seconds=2.0))
    first = world.station.twin.pose
    assert world.run(60, lift=-30) == 1
    assert world.station.twin.positions()[1] > -40
    world.now += EXPECTED_PAUSE
    assert world.run(1) == 2
    assert world.station.twin.pose != first
    assert world.station.twin.positions()[1] == pytest.approx(HOME[1], abs=4)


def test_while_episodes_are_saved_nothing_moves_within_one():
    world = World(LeRobotCommand(episode_seconds=60.0))
    world.run(20, lift=-30)
    assert world.run(90) == 1  # three seconds at home
    assert World(LeRobotCommand(episode_seconds=60.0), home_s=0.5).run(20, lift=-30) == 1


def test_a_hiccup_within_an_episode_is_none_of_its_ends():
    world = World(LeRobotCommand(episode_seconds=60.0))
    world.run(20, lift=-30)
    world.now += 0.9 * PAUSE
    assert world.run(1) == 1
    world.now += 1.1 * PAUSE  # a key ended the episode early
    assert world.run(1) == 2


def test_a_policy_that_thinks_is_no_pause():
    world = World(LeRobotCommand(episode_seconds=0.5))
    world.run(20, lift=-30)
    for _ in range(3):
        world.station.look()
        world.now += 5.0  # between a look and a command
        world.station.command(dict(zip(FEATURES, HOME.tolist(), strict=True)))
    assert world.station.pauses == 0


def test_a_leader_needs_a_twin(make_robot, make_leader):
    leader = make_leader()
    with pytest.raises(InputError, match=r"one is not connected \(connected: none\)"):
        leader.get_action()
    make_robot(id="a")
    make_robot(id="b")
    with pytest.raises(InputError, match="connected: a, b"):
        leader.get_action()
    assert make_leader(robot="b").get_action()
    with pytest.raises(InputError, match="c is not connected"):
        find_station("c")
