import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prism_motor._checks import InputError
from prism_motor.sim.so101 import FRAME, HOME, Twin, make_leader
from prism_motor.sim.so101.scenes import SCENES
from prism_motor.sim.so101.units import ACTION_HIGH, ACTION_LOW


def episode(twin, seed, frames=40, look=False):
    """Return states, the whole simulator's state and the outcome of a leader's episode."""
    twin.reset(seed=seed)
    leader = make_leader(twin)
    states = []
    for _ in range(frames):
        twin.step(leader.act())
        states.append(twin.positions())
        if look:
            twin.images()
    return np.stack(states), twin.data.qpos.copy(), twin.outcome


@pytest.mark.parametrize("task", SCENES)
def test_equal_seeds_give_equal_bits(task):
    one, other = Twin(task, cameras=()), Twin(task, camera_size=32)
    first = episode(one, 5)
    episode(other, 8, frames=7)  # what was before a reset does not matter, nor do pictures
    second = episode(other, 5, look=True)
    other.close()
    assert_array_equal(first[0], second[0])
    assert_array_equal(first[1], second[1])
    assert first[2] == second[2]
    assert (episode(one, 6)[0] != first[0]).any()


def test_a_step_takes_exactly_its_time():
    twin = Twin(cameras=())
    twin.reset(seed=0)
    for number in range(1, 31):
        twin.step(HOME)
        assert twin.time == pytest.approx(number * FRAME, abs=1e-12)
    twin.step(HOME, seconds=0.0123)
    assert twin.time == pytest.approx(1.0123, abs=1e-12)
    for wrong in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(InputError, match="s of simulated time, got"):
            twin.step(HOME, seconds=wrong)


def test_an_episode_begins_at_rest_at_home():
    for servos, off in (("soft", 2.5), ("stiff", 0.1)):
        twin = Twin(servos=servos, cameras=())
        twin.reset(seed=3)
        start = twin.positions()
        assert np.abs(start - HOME).max() < off
        thing = twin.thing
        for _ in range(30):
            twin.step(HOME)
        assert np.abs(twin.positions() - start).max() < 0.05
        assert np.abs(twin.thing - thing).max() < 1e-4


def test_joints_follow_their_targets_and_stop_at_the_ends_of_their_ranges():
    twin = Twin(servos="stiff", cameras=())
    twin.reset(seed=0)
    wanted = HOME + np.array([25.0, 0.0, 0.0, -10.0, 40.0, 60.0])
    for _ in range(60):
        twin.step(wanted)
    assert_allclose(twin.positions(), wanted, atol=0.5)
    beyond = HOME + np.array([500.0, 0, 0, 0, 0, 400.0])
    for _ in range(60):
        twin.step(beyond)
    assert twin.positions()[0] == pytest.approx(ACTION_HIGH[0], abs=1)
    assert twin.positions()[5] == pytest.approx(100, abs=1)
    assert (twin.positions() >= ACTION_LOW - 1).all()
    assert_array_equal(twin.targets, beyond)


def test_things_are_put_where_they_should_be():
    twin = Twin(cameras=())
    pose = (0.21, -0.02, 0.1)
    twin.reset(pose=pose)
    assert twin.pose == pose
    assert_allclose(twin.thing[:2], pose[:2])
    assert_allclose(twin.thing[3:], [np.cos(0.05), 0, 0, np.sin(0.05)], atol=1e-3)
    button = np.array([0.04, 0.0165])
    turn = np.array([[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]])
    assert_allclose(twin.target[:2], np.array(pose[:2]) + turn @ button, atol=1e-4)
    assert twin.target[2] == pytest.approx(0.0345, abs=1e-3)
    for fixed in twin.evaluation_poses[:3]:
        twin.reset(pose=fixed)
        assert_allclose(twin.thing[:2], fixed[:2])
    wide = Twin(placement="wide", cameras=())
    assert wide.evaluation_poses != twin.evaluation_poses


def test_wrong_input_is_refused():
    with pytest.raises(InputError, match=r"task of the SO-101 'mouse-click'.*mouse-click-v0"):
        Twin("mouse-click")
    with pytest.raises(InputError, match="Unknown servos"):
        Twin(servos="hard")
    with pytest.raises(InputError, match="Unknown placement"):
        Twin(placement="everywhere")
    with pytest.raises(InputError, match="camera of the SO-101 'front'"):
        Twin(cameras=("front",))
    twin = Twin(cameras=())
    with pytest.raises(InputError, match="either a seed or a pose"):
        twin.reset()
    with pytest.raises(InputError, match="either a seed or a pose"):
        twin.reset(seed=1, pose=twin.pose)
    with pytest.raises(InputError, match="from 0, got -1"):
        twin.reset(seed=-1)
    with pytest.raises(InputError, match="beyond what the arm was tried on"):
        twin.reset(pose=(0.5, 0, 0))
    with pytest.raises(InputError, match="6 numbers"):
        twin.step(np.zeros(5))
    with pytest.raises(InputError, match="finite"):
        twin.step([np.inf] * 6)


@pytest.mark.parametrize("task", SCENES)
def test_both_cameras_see_the_thing(task):
    with Twin(task, camera_size=64) as twin:
        twin.reset(pose=twin.placement.middle)
        there = twin.images()
        assert {name: image.shape for name, image in there.items()} == {
            "agent": (64, 64, 3),
            "wrist": (64, 64, 3),
        }
        assert all(image.dtype == np.uint8 for image in there.values())
        moved = np.array(twin.placement.middle) + np.array([0.0, 0.02, 0.1])
        twin.reset(pose=tuple(moved))
        for camera, image in twin.images().items():
            changed = (image != there[camera]).any(-1).mean()
            assert 0.005 < changed < 0.5, camera
        assert twin.draw("agent", 96).shape == (96, 96, 3)


def test_a_twin_without_pictures_draws_none(monkeypatch):
    from prism_motor.sim.so101 import twin as module

    monkeypatch.setattr(module, "CameraRenderer", None)
    episode(Twin(), 1, frames=3)
