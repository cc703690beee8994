"""The runner refuses to act on what it cannot believe, and what it then does instead."""

import time
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from prism_motor.cli import main
from prism_motor.export import runner
from tests.export.bound import read_contract

FORWARD = np.array([0.3, 0.0, 0.0])


@pytest.fixture(scope="module")
def export(exports):
    return runner.load_export(exports("quadruped"))


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self):
        return self.now


class Speaking:
    """A policy that says something of its own from some step on."""

    def __init__(self, session, words, after=0):
        self.session, self.words, self.left = session, words, after
        self.get_inputs, self.get_outputs = session.get_inputs, session.get_outputs

    def run(self, names, feed):
        self.left -= 1
        if self.left >= 0:
            return self.session.run(names, feed)
        return [np.full((1, 12), self.words, np.float32)]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def controller(export, clock):
    return runner.Controller(export.contract, export.session, clock)


@pytest.fixture
def reading(export):
    return runner.read(*runner.draw_start(export.contract, 3))


def stopped(controller, reading, command=FORWARD):
    with pytest.raises(runner.SafetyStop) as caught:
        controller.step(reading, command)
    return caught.value


def test_a_bad_measurement_holds_the_last_good_posture_until_reset(controller, reading):
    controller.step(reading, FORWARD)
    moved = replace(reading, q=reading.q + 0.05)
    controller.step(moved, FORWARD)
    bad = replace(reading, dq=np.where(np.arange(12) == 4, np.nan, 0.0))
    # The joints of the bad reading are believable, its velocities are not.
    stop = stopped(controller, bad)
    np.testing.assert_array_equal(stop.targets, reading.q)
    assert str(stop) == (
        "at control step 2 (0.04 s): measured dq of front_right_hip_pitch is nan; it must be a "
        "number from -30 to 30"
    )
    again = stopped(controller, moved)  # which would be fine
    assert str(again) == str(stop)
    np.testing.assert_array_equal(again.targets, stop.targets)
    controller.reset()
    assert controller.step(moved, FORWARD).shape == (12,)


def test_without_a_good_measurement_it_holds_the_default_pose(controller, reading, export):
    stop = stopped(controller, replace(reading, q=np.full(12, np.inf)))
    np.testing.assert_array_equal(stop.targets, [joint["default"] for joint in joints(export)])


def joints(export):
    return export.contract["joints"]


def test_a_posture_is_within_the_ranges(controller, reading, export):
    low, high = np.array([joint["range"] for joint in joints(export)]).T
    beyond = replace(reading, q=high + 0.19)
    controller.step(beyond, FORWARD)  # within the tolerance of 0.2
    stop = stopped(controller, replace(reading, q=high + 0.21))
    assert "q of front_left_hip_roll is 0.91; it must be a number from -0.9 to 0.9" in str(stop)
    np.testing.assert_array_equal(stop.targets, high)
    assert (low < high).all()


@pytest.mark.parametrize(
    ("field", "values", "words"),
    [
        ("dq", np.full(12, 30.1), "dq of front_left_hip_roll is 30.1"),
        ("angular_velocity", np.array([0, 35.1, 0]), "angular_velocity of y is 35.1"),
        ("euler", np.array([0.0, 0.0, 4.0]), "euler of yaw is 4"),
        ("euler", np.array([0.0, 1.6, 0.0]), "euler of pitch is 1.6"),
        ("q", np.zeros(11), r"q must be 12 numbers, but it is an array of shape \(11,\)"),
        ("q", np.zeros(12, bool), "q must be 12 numbers, .* bool"),
        ("q", None, "q must be 12 numbers, .* object"),
    ],
)
def test_limits_of_measurements(controller, reading, field, values, words):
    stop = stopped(controller, replace(reading, **{field: values}))
    with pytest.raises(runner.SafetyStop, match=words):
        raise stop


def test_torques_are_those_of_the_drives_in_mujoco(export, controller):
    data = mujoco.MjData(export.model)
    data.qpos[:], data.qvel[:] = runner.draw_start(export.contract, 0)
    random = np.random.default_rng(0)
    limits = np.array([joint["torque_limit"] for joint in joints(export)])
    full = 0
    for _ in range(30):
        controller.targets = data.qpos[7:] + random.normal(0, 0.4, 12)
        data.ctrl[:] = controller.targets
        mujoco.mj_forward(export.model, data)
        torques = controller.torques(data.qpos[7:], data.qvel[6:])
        np.testing.assert_allclose(torques, data.actuator_force, atol=1e-12)
        full += (np.abs(torques) == limits).sum()
        mujoco.mj_step(export.model, data, 5)
    assert full > 10  # the limit was reached


def test_a_drive_that_does_not_know_its_angle_does_not_push(controller, reading):
    controller.step(reading, FORWARD)
    assert np.abs(controller.torques(reading.q, reading.dq)).max() > 0
    unknown = np.where(np.arange(12) == 2, np.nan, reading.q)
    np.testing.assert_array_equal(controller.torques(unknown, reading.dq), 0)
    assert "q of front_left_knee is nan" in controller.stopped
    assert np.abs(controller.torques(reading.q + 0.1, reading.dq)).max() > 0  # holds again


def test_targets_end_where_they_ask_for_the_full_torque_at_the_end_of_the_range(export, reading):
    contract = export.contract
    controller = runner.Controller(contract, Speaking(export.session, 1e6), Clock())
    targets = controller.step(reading, FORWARD)
    high = np.array([joint["range"][1] for joint in joints(export)])
    ends = [joint["torque_limit"] / joint["stiffness"] for joint in joints(export)] + high
    np.testing.assert_array_equal(targets, np.minimum(ends, targets))
    assert (targets == ends).sum() == 12
    assert (np.abs(controller.action) == contract["action"]["clip"]).all()
    limits = [joint["torque_limit"] for joint in joints(export)]
    np.testing.assert_allclose(controller.torques(high, np.zeros(12)), limits)


def test_a_late_step_stops(controller, reading, clock):
    for clock.now in (10.0, 10.02, 10.11):  # the first may come at any time
        controller.step(reading, FORWARD)
    clock.now = 10.22
    stop = stopped(controller, reading)
    assert "last control step was 0.11 s ago; safety.deadline allows 0.1 s" in str(stop)
    controller.reset()
    controller.step(reading, FORWARD)
    clock.now = 10.21  # a clock that goes back
    assert "-0.01 s ago" in str(stopped(controller, reading))


def test_stale_targets_are_not_followed(controller, reading, clock):
    targets = controller.step(reading, FORWARD)
    clock.now = 0.09
    np.testing.assert_array_equal(controller.follow(), targets)
    clock.now = 0.11
    np.testing.assert_array_equal(controller.follow(), reading.q)
    assert "0.11 s ago" in str(stopped(controller, reading))


def test_a_policy_that_takes_too_long_is_late(export, reading, clock):
    class Slow(Speaking):
        def run(self, names, feed):
            clock.now += 0.2
            return super().run(names, feed)

    controller = runner.Controller(export.contract, Slow(export.session, 0.0), clock)
    np.testing.assert_array_equal(stopped(controller, reading).targets, reading.q)


def test_time_is_real_unless_a_clock_is_given(export, reading):
    controller = runner.Controller(export.contract, export.session)
    controller.step(reading, FORWARD)
    time.sleep(0.11)
    np.testing.assert_array_equal(controller.follow(), reading.q)
    assert "the last control step was" in str(stopped(controller, reading))


def test_commands_are_clamped_to_what_was_trained(controller, export, capsys):
    ranges = export.contract["command"]["ranges"]
    (_, forward), (left, _) = ranges["forward"], ranges["sideways"]
    np.testing.assert_allclose(
        controller.velocity_command(np.array([9.0, -9.0, 0.5]), 0.0), [forward, left, 0.25]
    )
    controller.velocity_command(np.array([8.0, 0.0, 0.5]), 0.0)
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 2  # once each
    assert "forward 9.0 is outside the trained range -0.3 to 0.6; it is clamped to 0.6" in notes[0]
    turned = controller.velocity_command(np.array([0.3, 0.0, 0.4 + 4 * np.pi]), 0.0)
    np.testing.assert_allclose(turned, [0.3, 0.0, 0.2])
    assert capsys.readouterr().err == ""  # the same heading, so nothing to note


def test_a_held_command_is_a_yaw_rate_whatever_was_followed_in_training(controller, capsys):
    assert "heading" in controller.contract["command"]["ranges"]
    controller.by_rate = True
    for yaw in (0.0, 2.0):
        held = controller.velocity_command(np.array([0.3, 0.0, 0.4]), yaw)
        np.testing.assert_allclose(held, [0.3, 0.0, 0.4])
    assert capsys.readouterr().err == ""
    assert controller.velocity_command(np.array([0.3, 0.0, 4.0]), 0.0)[2] == 1.0
    assert "yaw_rate 4.0 is outside the trained range" in capsys.readouterr().err


def test_a_policy_that_was_trained_with_yaw_rates_takes_one(exports, export, capsys):
    contract = read_contract(exports("quadruped"))
    turn = contract["command"]["ranges"].pop("heading")
    assert turn == [-3.14, 3.14]
    contract["command"]["ranges"]["yaw_rate"] = [-0.3, 0.3]
    controller = runner.Controller(contract, export.session)
    np.testing.assert_allclose(
        controller.velocity_command(np.array([0.3, 0.0, 0.2]), 1.0), [0.3, 0.0, 0.2]
    )
    np.testing.assert_allclose(
        controller.velocity_command(np.array([0.3, 0.0, 2.0]), 1.0), [0.3, 0.0, 0.3]
    )
    assert "yaw_rate 2.0 is outside the trained range -0.3 to 0.3" in capsys.readouterr().err
    drawn = runner.draw_commands(contract, 8000.0, seed=0)[:, 2]
    assert 0.25 < np.abs(drawn).max() <= 0.3
    runner.check_contract(contract)
    contract["command"]["ranges"]["heading"] = [-3.14, 3.14]
    with pytest.raises(runner.RunnerError, match=r"unknown field: command\.ranges\.heading"):
        runner.check_contract(contract)
    for name in ("heading", "yaw_rate"):
        del contract["command"]["ranges"][name]
    with pytest.raises(runner.RunnerError, match=r"lacks: command\.ranges\.heading"):
        runner.check_contract(contract)


def test_standing_is_always_allowed(exports, export):
    contract = read_contract(exports("quadruped"))
    contract["command"]["ranges"]["forward"] = [0.2, 0.6]
    controller = runner.Controller(contract, export.session)
    np.testing.assert_array_equal(controller.velocity_command(np.zeros(3), 0.0), 0)
    assert controller.velocity_command(np.array([0.1, 0.1, 0]), 0.0)[0] == 0.2


def test_an_own_source_that_fails_holds_the_robot(controller, reading, monkeypatch):
    def broken(controller, reading):
        raise ZeroDivisionError("no echo")

    monkeypatch.setitem(runner.SOURCES, "clock", broken)
    stop = stopped(controller, reading)
    assert "ZeroDivisionError: no echo" in str(stop)
    assert isinstance(stop.__cause__, ZeroDivisionError)  # a bug keeps its traceback
    np.testing.assert_array_equal(stop.targets, reading.q)


def test_a_bug_is_shown_after_the_robot_was_held(exports, monkeypatch, capsys):
    clock = runner.SOURCES["clock"]

    def broken(controller, reading):
        return clock(controller, reading) if controller.steps < 3 else 1 / 0

    monkeypatch.setitem(runner.SOURCES, "clock", broken)
    with pytest.raises(SystemExit) as caught:
        main(["sim2sim", str(exports("quadruped"))])
    assert caught.value.code == 3
    printed = capsys.readouterr()
    assert "stopped after 0.06 s" in printed.out
    assert "in broken" in printed.err
    assert "ZeroDivisionError" in printed.err.splitlines()[-1]
    assert "prism: stopped at control step 3 (0.06 s): " in printed.err.splitlines()[-1]


@pytest.mark.parametrize("size", [1, 3])
def test_sizes_are_found_wrong_before_anything_moves(export, monkeypatch, size):
    monkeypatch.setitem(runner.SOURCES, "clock", lambda controller, reading: np.zeros(size))
    with pytest.raises(runner.RunnerError, match=r"source 'clock' entry must be 2 numbers"):
        runner.Controller(export.contract, export.session)


def test_a_simulation_goes_on_in_the_safe_posture(export, monkeypatch):
    told = []
    advance = runner.parts.walking.advance

    def listen(control, model, data, targets):
        told.append((data.qpos[7:].copy(), targets))
        advance(control, model, data, targets)
        told[-1] += (data.qpos[2],)

    monkeypatch.setattr(runner.parts.walking, "advance", listen)
    walking = replace(export, session=Speaking(export.session, np.nan, after=10))
    episode = runner.simulate(walking, 2.0, FORWARD[None], *runner.draw_start(export.contract, 0))
    assert episode.fall is None
    assert episode.seconds == pytest.approx(10 * 0.02)
    assert "at control step 10 (0.20 s): the policy's output" in str(episode.stop)
    held = told[10:]
    assert len(held) == 50  # a second
    for _, targets, height in held:
        np.testing.assert_array_equal(targets, held[0][0])  # where the joints were
        assert height > 0.2  # it stands
    assert np.isfinite([targets for _, targets, _ in told]).all()


def test_a_simulation_that_diverges_is_a_stop(exports, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log
    export = runner.load_export(exports("quadruped"))
    export.model.opt.gravity[2] = 1e30
    start = runner.draw_start(export.contract, 0)
    episode = runner.simulate(export, 1.0, FORWARD[None], *start)
    assert "the simulation diverged" in str(episode.stop)


@pytest.mark.parametrize("commands", [[[np.nan, 0, 0]], [[0, 0]], [], [0, 0, 0]])
def test_commands_of_a_simulation_are_checked_first(export, commands):
    start = runner.draw_start(export.contract, 0)
    with pytest.raises(runner.RunnerError, match="rows of three finite numbers"):
        runner.simulate(export, 1.0, np.array(commands, float), *start)
