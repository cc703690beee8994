"""Who puts the thing elsewhere between two episodes."""

import pytest

pytest.importorskip("mujoco", reason="mujoco is not installed")

from prism_motor.sim.so101.operator import Operator
from prism_motor.sim.so101.twin import HOME, Twin


@pytest.fixture(scope="module")
def twin():
    with Twin() as twin:
        yield twin


def run(operator, frames, lift=HOME[1]):
    """Drive for some frames; return how often the thing was put elsewhere."""
    moved = 0
    for _ in range(frames):
        operator.twin.step([HOME[0], lift, *HOME[2:]])
        moved += operator.watch(1 / 30)
    return moved


def test_placements_follow_from_the_seed(twin):
    operator = Operator(twin, seed=40)
    twin_pose = twin.pose
    operator.place()
    second = twin.pose
    twin.reset(seed=40)
    assert twin.pose == twin_pose
    twin.reset(seed=41)
    assert twin.pose == second


def test_the_arm_has_to_leave_and_to_come_back(twin):
    operator = Operator(twin, patience=0.5)
    assert operator.at_home
    assert run(operator, 30) == 0
    assert run(operator, 20, lift=-30) == 0
    assert not operator.at_home
    assert run(operator, 60) == 1
    assert operator.placements == 2
    assert twin.time < 60 / 30  # an episode began


def test_a_pause_ends_an_episode_in_which_something_happened(twin):
    operator = Operator(twin)
    assert not operator.pause()
    run(operator, 20, lift=-30)
    assert operator.pause()
    assert operator.at_home


def test_who_asks_for_a_place_decides(twin):
    operator = Operator(twin)
    where = operator.place(7)
    run(operator, 20, lift=-30)
    assert not operator.pause()
    assert run(operator, 60) == 0
    assert twin.pose == where
