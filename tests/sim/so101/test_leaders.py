"""Scripted leaders; ten poses each here, two hundred in docs/so101.md."""

import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor.sim.so101 import HOME, Twin, make_leader
from prism_motor.sim.so101.leaders import LAGS, PLAY, SPEEDS
from prism_motor.sim.so101.scenes import SCENES, MouseClick


def show(twin, leader, seed, frames=300):
    twin.reset(seed=seed)
    leader.reset()
    actions = []
    while len(actions) < frames and not leader.done:
        actions.append(leader.act())
        twin.step(actions[-1])
    return np.stack(actions)


@pytest.mark.parametrize("servos", ["soft", "stiff"])
@pytest.mark.parametrize("task", SCENES)
def test_leaders_solve_their_task_and_come_home(task, servos):
    twin = Twin(task, placement="wide", servos=servos, cameras=())
    leader = make_leader(twin)
    for seed in range(1000, 1005):
        actions = show(twin, leader, seed)
        assert twin.outcome.success, seed
        assert leader.done
        np.testing.assert_allclose(actions[-1], HOME, atol=2 * PLAY)
        assert np.abs(np.radians(np.diff(actions[:, :5], axis=0))).max() < 0.06


def test_a_leader_is_as_different_as_people_are():
    twin = Twin(cameras=())
    leader = make_leader(twin)
    speeds, lags, lengths = [], set(), []
    for seed in range(12):
        actions = show(twin, leader, seed)
        speeds.append(leader.speed)
        lags.add(leader.lag)
        lengths.append(len(actions))
        # Before anything of the leader arrives, the follower holds what it held.
        np.testing.assert_array_equal(actions[: leader.lag], [HOME] * leader.lag)
        # Readings are in steps of the leader's play.
        read = actions[leader.lag : -1] / PLAY
        np.testing.assert_allclose(read, np.rint(read), atol=1e-6)
    assert SPEEDS[0] <= min(speeds) < max(speeds) <= SPEEDS[1]
    assert lags == set(range(LAGS[0], LAGS[1] + 1))
    assert np.corrcoef(speeds, lengths)[0, 1] < -0.8
    again = show(twin, leader, 3)
    np.testing.assert_array_equal(show(twin, leader, 3), again)
    twin.reset(seed=3)
    leader.reset(seed=4)
    assert leader.speed != pytest.approx(speeds[3])


def test_a_press_that_fails_is_tried_again():
    twin = Twin(cameras=())
    leader = make_leader(twin)
    twin.reset(seed=1)
    leader.reset()
    # The button is held up at first, as if it were stuck.
    place = twin.model.joint("left_button")
    free = place.range[1]
    place.range[1] = 1e-5
    for frame in range(300):
        if frame == 110:
            place.range[1] = free
        twin.step(leader.act())
        if twin.outcome.success:
            break
    assert twin.outcome.success
    assert frame > 110


def test_tasks_without_a_leader_say_so():
    class Other(MouseClick):
        name = "other-v0"

    with pytest.raises(InputError, match="no scripted leader for other-v0"):
        make_leader(Twin(Other(), cameras=()))
