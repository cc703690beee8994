"""A session without a browser: how the arm follows, and what may be done when."""

import math

import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor.manipulation.demonstrations.collection import SEEDS_APART
from prism_motor.manipulation.demonstrations.recording import load_demonstration
from prism_motor.sim.so101 import FRAME, HOME
from prism_motor.sim.so101.kinematics import UnreachableError, against_gravity, inverse
from prism_motor.sim.so101.leaders import FASTEST
from prism_motor.sim.so101.units import to_lerobot, to_radians
from prism_motor.viewer.teleop import session as module
from tests.viewer.teleop.operator import press_the_button, record, record_briefly, steps


@pytest.mark.parametrize("suite", ["so101", "so101_stiff", "so101_wide", "so101_stiff_wide"])
def test_an_operator_clicks_the_mouse(teleoperate, suite):
    session = teleoperate(suite=suite)
    take = record(session)
    assert take.success
    assert "a success" in session.said
    assert session.hand.said == ""


def test_an_operator_presses_the_key(teleoperate):
    session = teleoperate(task="press-key-v0")
    session.start()
    session.move(roll=session.twin.pose.yaw - math.atan2(*session.twin.target[1::-1]))
    press_the_button(session, pitch=1.55)
    assert session.outcome.success
    assert session.outcome.wrong_presses == 0


def test_a_press_over_nothing_is_said_and_lifted_again(teleoperate):
    session = teleoperate()
    session.move(position=(0.2, -0.15, 0.05), pitch=1.1)
    steps(session, 60)
    session.press()
    while session.hand.pressing:
        session.step()
    assert "Nothing closed" in session.hand.said
    assert session.target.position == (0.2, -0.15, 0.05)
    steps(session, 30)
    assert session.twin.tip == pytest.approx(session.target.position, abs=0.001)
    assert not session.outcome.pressed
    # Whoever moves the tip meanwhile takes over.
    session.press()
    steps(session, 5)
    lowered = session.target.position[2]
    assert lowered < 0.05
    session.nudge(0.0, 0.004, 0.0)
    assert not session.hand.pressing
    steps(session, 30)
    assert session.target.position[2] == lowered


@pytest.mark.parametrize("suite", ["so101", "so101_stiff"])
def test_the_tip_goes_where_it_is_told(teleoperate, suite):
    session = teleoperate(suite=suite)
    session.move(position=(0.22, 0.06, 0.1), pitch=1.2, roll=0.4, opening=50)
    steps(session, 90)
    assert session.twin.tip == pytest.approx((0.22, 0.06, 0.1), abs=0.001)
    # What was commanded is the closed form, raised against the weight of the arm.
    opening = to_radians([0, 0, 0, 0, 0, 50])[5]
    wanted = inverse((0.22, 0.06, 0.1), 1.2, roll=0.4, opening=opening)
    raised = to_lerobot(against_gravity(wanted, session.twin.servos.kp))
    assert session.twin.targets == pytest.approx(raised, abs=1e-4)
    session.home()
    steps(session, 90)
    assert session.twin.targets == pytest.approx(HOME, abs=0.5)


def test_joints_are_no_faster_than_the_leaders(teleoperate):
    session = teleoperate(suite="so101_stiff")  # where the arm's weight hardly adds to the targets
    session.move(position=(0.15, -0.2, 0.15), pitch=0.6, opening=100)
    told = [to_radians(session.twin.targets)]
    for _ in range(60):
        session.step()
        told.append(to_radians(session.twin.targets))
    changes = np.abs(np.diff(told, axis=0)).max(axis=1)
    assert changes.max() < 1.02 * FASTEST
    assert changes.max() > 0.9 * FASTEST
    assert changes[-1] == 0


def test_unreachable_targets_are_said_and_the_last_one_is_kept(teleoperate):
    session = teleoperate()
    session.move(position=(0.22, 0.0, 0.12))
    kept = session.target
    with pytest.raises(UnreachableError, match=r"cannot reach \(0.900, 0.000, 0.100\)"):
        session.move(position=(0.9, 0.0, 0.1))
    with pytest.raises(UnreachableError, match="wrist_flex would be at"):
        session.move(pitch=-1.5)
    for _ in range(100):
        try:
            session.nudge(0.004, 0.0, 0.0)
        except UnreachableError:
            break
    else:
        pytest.fail("the arm has no end")
    assert session.target.position[0] > kept.position[0]
    assert session.target.position[1:] == kept.position[1:]
    steps(session, 100)
    assert session.twin.tip == pytest.approx(session.target.position, abs=0.002)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"position": (math.nan, 0.0, 0.1)}, "all finite"),
        ({"position": (0.2, 0.1)}, r"position \(3\)"),
        ({"pitch": math.inf}, "all finite"),
        ({"roll": 9.0}, "wrist_roll would be at"),
        ({"opening": 101.0}, "from 0 to 100 %"),
        ({"opening": -1.0}, "from 0 to 100 %"),
    ],
)
def test_targets_that_make_no_sense_change_nothing(teleoperate, changes, said):
    session = teleoperate()
    before = session.target
    with pytest.raises(InputError, match=said):
        session.move(**changes)
    assert session.target == before


def test_equal_commands_record_equal_bits(teleoperate):
    episodes = []
    for folder in ("one", "two"):
        session = teleoperate(folder, seed=7)
        session.next_placement()
        take = record(session)
        assert take.seed == 7 * SEEDS_APART + 1
        episodes.append(load_demonstration(session.takes.folder / "000000.npz"))
    one, two = episodes
    for name in ("states", "objects", "actions"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert {*one.images} == {"agent", "wrist"}
    assert all(np.array_equal(one.images[camera], two.images[camera]) for camera in one.images)
    # An episode begins at home, and what is commanded is what is recorded.
    assert one.states[0] == pytest.approx(HOME, abs=6)
    assert one.actions[0] == pytest.approx(HOME, abs=FASTEST * 180 / math.pi + 0.5)


def test_time_passes_in_whole_frames(teleoperate):
    session = teleoperate()
    for _ in range(100):
        session.advance(0.01)
    assert session.steps == round(1 / FRAME)


def test_commands_at_the_wrong_time_are_refused(teleoperate):
    session = teleoperate(episodes=1)
    for command in (session.keep, session.discard):
        with pytest.raises(InputError, match="no episode is being recorded"):
            command()
    for command in (session.undo, session.record_again):
        with pytest.raises(InputError, match="no kept episode"):
            command()
    session.start()
    with pytest.raises(InputError, match="no frame yet"):
        session.keep()
    for command in (session.start, session.undo, session.next_placement):
        with pytest.raises(InputError, match="keep or discard it first"):
            command()
    steps(session, 3)
    session.keep()
    with pytest.raises(InputError, match="All 1 episodes are kept"):
        session.start()


def test_placements_go_on_after_keeping_and_stay_after_discarding(teleoperate):
    session = teleoperate(seed=2)
    first = 2 * SEEDS_APART
    session.start()
    steps(session, 3)
    session.discard()
    assert (session.seed, session.frames, session.recording) == (first, 0, False)
    assert record_briefly(session).seed == first
    assert session.seed == first + 1
    session.next_placement()
    assert record_briefly(session).seed == first + 2
    session.record_again()
    assert session.seed == first + 2
    assert session.recording
    assert len(session.kept) == 1


def test_an_episode_ends_after_a_minute(teleoperate, monkeypatch):
    monkeypatch.setattr(module, "MOST_FRAMES", 4)
    session = teleoperate()
    session.start()
    steps(session, 10)
    assert session.full
    assert session.keep().frames == 4
