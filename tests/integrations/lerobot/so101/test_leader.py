"""``so101_sim_leader`` moves the twin of the same process."""

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

from lerobot.teleoperators import TeleoperatorConfig, make_teleoperator_from_config

from prism_motor._checks import InputError
from prism_motor.integrations.lerobot.so101 import SO101SimLeader, SO101SimLeaderConfig
from prism_motor.sim.so101.twin import HOME
from prism_motor.sim.so101.units import FEATURES


def test_lerobot_makes_it_by_its_name():
    config = TeleoperatorConfig.get_choice_class("so101_sim_leader")(id="scripted")
    assert isinstance(make_teleoperator_from_config(config), SO101SimLeader)


@pytest.mark.parametrize("fps", [30, 60])
def test_it_clicks_then_waits_at_home(make_robot, make_leader, fps):
    leader = make_leader()  # connected before the robot, as lerobot-teleoperate does
    robot = make_robot(fps=fps, seed=2)
    assert leader.action_features == robot.action_features
    frames = 0
    while not robot.outcome()["success"]:
        robot.send_action(leader.get_action())
        frames += 1
        assert frames < 6 * fps, "no click within six seconds"
    assert frames > 1.5 * fps  # at any rate, it moves as fast
    for _ in range(4 * fps):
        sent = robot.send_action(leader.get_action())
    assert sent == dict(zip(FEATURES, HOME.tolist(), strict=True))


def test_it_shows_again_after_a_rest(make_robot, make_leader):
    robot, leader = make_robot(), make_leader(rest_s=1.0)
    clicks = 0
    for _ in range(400):
        before = robot.outcome()["success"]
        robot.send_action(leader.get_action())
        clicks += robot.outcome()["success"] and not before
    assert clicks >= 2


def test_it_begins_anew_where_the_thing_is_put(make_robot, make_leader):
    robot, leader = make_robot(), make_leader()
    for _ in range(60):
        robot.send_action(leader.get_action())
    robot.place(11)
    for _ in range(200):
        robot.send_action(leader.get_action())
    assert robot.outcome()["success"]


def test_a_rest_is_checked():
    with pytest.raises(InputError, match=r"teleop.rest_s must be from 0 to 3600"):
        SO101SimLeaderConfig(rest_s=-1)
