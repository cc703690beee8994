import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prism_motor._checks import InputError
from prism_motor.sim.so101 import units


def test_degrees_and_percent_are_lerobots():
    angles = np.radians([10.0, -20.0, 30.0, 40.0, -50.0, 0.0])
    values = units.to_lerobot(angles)
    assert_allclose(values[:5], [10, -20, 30, 40, -50])
    assert values[5] == pytest.approx(100 * 0.17453 / 1.91986)
    assert units.to_lerobot(units.LOW)[5] == 0
    assert units.to_lerobot(units.HIGH)[5] == 100


def test_units_go_there_and_back():
    random = np.random.default_rng(0)
    angles = random.uniform(units.LOW, units.HIGH, (50, 6))
    assert_allclose(units.to_radians(units.to_lerobot(angles)), angles, atol=1e-14)
    ticks = units.to_ticks(angles)
    assert_array_equal(units.to_ticks(units.from_ticks(ticks)), ticks)
    assert np.abs(units.from_ticks(ticks) - angles).max() <= np.pi / 4095 + 1e-12


def test_ticks_are_those_that_lerobot_turns_into_the_same_degrees():
    # LeRobot: degrees = (raw - middle of the range) * 360 / 4095
    for joint, ends in units.tick_ranges().items():
        if joint in ("wrist_roll", "gripper"):
            continue
        number = units.JOINTS.index(joint)
        angles = np.zeros(6)
        angles[number] = np.radians(30.0)
        raw = units.to_ticks(angles)[number]
        degrees = (raw - (ends.low + ends.high) / 2) * 360 / 4095
        assert degrees == pytest.approx(30, abs=0.09), joint


def test_the_calibration_has_the_ranges_of_the_joints():
    ranges = units.tick_ranges()
    assert list(ranges) == list(units.JOINTS)
    assert [one.id for one in ranges.values()] == [1, 2, 3, 4, 5, 6]
    assert (ranges["shoulder_pan"].low, ranges["shoulder_pan"].high) == (796, 3298)
    assert (ranges["gripper"].low, ranges["gripper"].high) == (1933, 3185)
    assert (ranges["wrist_roll"].low, ranges["wrist_roll"].high) == (0, 4095)


def test_wrong_numbers_of_joints_are_refused():
    with pytest.raises(InputError, match="6 joints, got shape"):
        units.to_radians(np.zeros(5))
    with pytest.raises(InputError, match=r"are 6 numbers \(shoulder_pan.*got shape \(7,\)"):
        units.check_targets(np.zeros(7))
    with pytest.raises(InputError, match="must be finite"):
        units.check_targets([0, 0, np.nan, 0, 0, 0])
