"""Servos without a load, against the solution on paper."""

import math

import pytest

from prism_motor.integrations.feetech.servos import (
    NO_LOAD_SPEED,
    Drive,
    FirstOrderServos,
    HandledServos,
)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_small_step_is_exponential():
    clock = Clock()
    servos = FirstOrderServos((2000.0,), time_constant=0.05, clock=clock)
    servos.drive(0, Drive(2010, torque=True))
    clock.now = 0.05
    assert servos.positions()[0] == pytest.approx(2010 - 10 / math.e)


def test_a_large_step_starts_at_full_speed_and_looking_more_often_changes_nothing():
    once, often = Clock(), Clock()
    servos = [FirstOrderServos((0.0,), time_constant=0.05, clock=clock) for clock in (once, often)]
    for one in servos:
        one.drive(0, Drive(-2000, torque=True))
    for i in range(1, 101):
        often.now = i / 100
        seen = servos[1].positions()[0]
        if i == 10:
            assert seen == pytest.approx(-0.1 * NO_LOAD_SPEED)
    once.now = 1.0
    assert servos[0].positions()[0] == pytest.approx(seen, abs=1e-9)
    assert seen == pytest.approx(-2000, abs=0.1)


def test_a_motor_that_is_off_stays_and_can_be_turned_by_hand():
    clock = Clock()
    servos = FirstOrderServos((100.0,), clock=clock)
    servos.drive(0, Drive(200, torque=False))
    clock.now = 5.0
    assert servos.positions() == [100.0]
    servos.turn(0, 150)
    clock.now = 6.0
    assert servos.positions() == [150.0]


def test_a_hand_moves_what_is_off_and_not_what_is_on():
    clock = Clock()
    servos = HandledServos(lambda seconds: (10 * seconds, 20 * seconds), clock=clock)
    servos.drive(1, Drive(0, torque=True))
    clock.now = 3.0
    assert servos.positions() == [30.0, 0.0]
