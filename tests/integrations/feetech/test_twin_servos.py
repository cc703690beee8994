"""The twin behind the emulated bus, moved by LeRobot's own follower."""

import os
import time

import pytest

pytest.importorskip("mujoco", reason="mujoco is not installed")

from prism_motor._checks import InputError
from prism_motor.integrations.feetech.arms import emulated_arms
from prism_motor.integrations.feetech.frames import read_frame
from prism_motor.integrations.feetech.servos import Drive
from prism_motor.integrations.feetech.twin_servos import TwinServos, TwinServosConfig
from prism_motor.sim.so101.twin import HOME
from prism_motor.sim.so101.units import FEATURES, to_radians, to_ticks

PLAIN = TwinServosConfig(image_size=0)
HOME_ACTION = dict(zip(FEATURES, HOME.tolist(), strict=True))


def wait_until(happened, seconds=30):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def test_it_starts_at_home_and_holds_what_is_off():
    servos = TwinServos(PLAIN)
    try:
        start = servos.positions()
        assert start == pytest.approx(to_ticks(to_radians(HOME)).tolist(), abs=40)
        time.sleep(0.3)
        assert servos.positions() == pytest.approx(start, abs=40)
    finally:
        servos.close()


def test_a_higher_gain_sags_less():
    elbow = 2
    goal = float(to_ticks(to_radians(HOME))[elbow])
    sags = {}
    servos = TwinServos(PLAIN)
    try:
        for gain in (16, 64):
            servos.drive(elbow, Drive(goal, torque=True, gain=gain))
            time.sleep(1)
            sags[gain] = servos.positions()[elbow] - goal
    finally:
        servos.close()
    assert sags[16] > 4  # down
    # The torque of gravity is the same, so a quarter is left, but for dry friction.
    assert sags[64] == pytest.approx(sags[16] / 4, abs=0.052 / (4 * 17.8) * 652)


def test_the_unmodified_follower_moves_the_twin(make_arm, tmp_path):
    with emulated_arms(tmp_path / "arms", TwinServosConfig(image_size=32)) as arms:
        arm = make_arm("follower", arms.follower)
        arm.connect()
        seen = arm.get_observation()
        assert [seen[name] for name in FEATURES] == pytest.approx(HOME.tolist(), abs=4)
        first = read_frame(tmp_path / "arms", "agent")
        assert first.image.shape == (32, 32, 3)
        wanted = {**HOME_ACTION, "shoulder_pan.pos": 30.0, "gripper.pos": 50.0}

        def arrived():
            arm.send_action(wanted)
            seen = arm.get_observation()
            return abs(seen["shoulder_pan.pos"] - 30) < 2 and abs(seen["gripper.pos"] - 50) < 3

        wait_until(arrived)
        wait_until(lambda: read_frame(tmp_path / "arms", "agent").number > first.number)
        assert (read_frame(tmp_path / "arms", "agent").image != first.image).any()
        arm.disconnect()
    assert read_frame(tmp_path / "arms", "agent") is None


def test_a_scripted_leader_clicks_through_both_unmodified_arms(make_arm, tmp_path):
    with emulated_arms(tmp_path / "arms", PLAIN, leader=True) as arms:
        leader, follower = make_arm("leader", arms.leader), make_arm("follower", arms.follower)
        leader.connect()
        follower.connect()

        def clicked():
            follower.send_action(leader.get_action())
            return arms.twin.success

        wait_until(clicked, 60)

        def again():
            follower.send_action(leader.get_action())
            return arms.twin.placements == 2

        wait_until(again, 60)
        follower.disconnect()
        leader.disconnect()


def test_one_folder_holds_one_emulated_arm(tmp_path):
    with emulated_arms(tmp_path) as arms:
        assert os.path.realpath(arms.follower.port).startswith("/dev/")
        with pytest.raises(InputError, match="already uses"), emulated_arms(tmp_path):
            pass
    with emulated_arms(tmp_path):
        pass


def test_mistakes_in_the_thread_are_raised_where_it_was_asked_for():
    with pytest.raises(InputError, match="Did you mean 'press-key-v0'"):
        TwinServos(TwinServosConfig(task="press-key"))
