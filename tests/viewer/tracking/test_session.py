"""A robot that is prompted live: time, reference, pushes, falls, and changing prompts."""

import math
import time

import numpy as np
import pytest
import torch

from prism_motor.tracking.prompts.prompter import Prompt
from prism_motor.viewer.tracking.placing import Placing, yaw_of
from prism_motor.viewer.tracking.session import LYING


def run(session, seconds, step=0.02):
    for _ in range(round(seconds / step)):
        session.advance(step)


def ask(session, text):
    """Ask for something, and wait until its latent is found."""
    session.ask(session.prompter.read(text))
    end = time.monotonic() + 60
    while session.waiting is not None:
        assert time.monotonic() < end
        session.advance(0.02)
        time.sleep(0.01)


def hold(session):
    """Let the robot's drives aim at the reference: it stands for a second or two."""
    session.prompter.policy = _OpenLoop(session)


class _OpenLoop(torch.nn.Module):
    def __init__(self, session):
        super().__init__()
        units = torch.tensor(session.prompter.task.units)
        self._action = session.prompter.references.hold(0, units)

    def forward(self, observations, latents):
        return self._action.expand(len(observations), -1)


# The reference ------------------------------------------------------------------------------------


@pytest.mark.parametrize("yaw", [0.0, 1.0, -3.0])
def test_a_reference_is_moved_and_turned_to_where_the_robot_is(yaw):
    rng = np.random.default_rng(0)
    wanted, found = rng.normal(size=(2, 36))
    wanted[3:7] = (math.cos(0.4), 0.0, 0.0, math.sin(0.4))
    found[3:7] = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
    placing = Placing.between(wanted, found)
    placed = placing(wanted)
    np.testing.assert_allclose(placed[:2], found[:2], atol=1e-12)
    assert math.remainder(yaw_of(placed[3:7]) - yaw, 2 * math.pi) == pytest.approx(0, abs=1e-9)
    assert placed[2] == wanted[2]
    np.testing.assert_array_equal(placed[7:], wanted[7:])
    # A step ahead in the motion is a step ahead of the robot.
    ahead = wanted.copy()
    ahead[:2] += 0.5 * np.array([math.cos(0.8), math.sin(0.8)])
    step = placing(ahead)[:2] - placed[:2]
    np.testing.assert_allclose(step, 0.5 * np.array([math.cos(yaw), math.sin(yaw)]), atol=1e-9)


def test_robot_and_reference_begin_in_the_same_state_and_keep_time(play):
    session = play("wave").session
    np.testing.assert_allclose(session.ghost, session.qpos, atol=1e-9)
    run(session, 0.5)
    first = session.prompted.start
    wanted = session.prompter.references.qpos[first + 25]
    np.testing.assert_allclose(session.ghost[7:], wanted[7:])
    assert session.trace[-1].apart == pytest.approx(
        np.abs(session.qpos[7:] - wanted[7:]).mean(), abs=1e-9
    )
    assert len(session.trace) == 25
    assert session.trace[-1].time == pytest.approx(0.5)
    assert math.isnan(session.trace[-1].reward)


def test_a_motion_begins_again_where_the_robot_is_then(play):
    session = play("wave").session
    hold(session)
    steps = len(session.prompted)
    session.picks_up = False
    for _ in range(steps + 1):
        session.step()
    wanted = session.prompter.references.qpos[session.prompted.start + 1]
    np.testing.assert_allclose(session.ghost[7:], wanted[7:])
    np.testing.assert_allclose(session.ghost[:2], session.qpos[:2], atol=0.2)


def test_a_pose_is_held_and_a_reward_has_no_reference(play):
    session = play("goal:squat@1").session
    frame = session.prompted.frames[0]
    for seconds in (0.1, 0.5):
        run(session, seconds)
        wanted = session.prompter.references.qpos[frame]
        np.testing.assert_allclose(session.ghost[7:], wanted[7:])
    ask(session, "reward:stand")
    session.step()
    assert session.ghost is None
    assert session.poses()[1] is None
    assert 0 <= session.trace[-1].reward <= 1
    assert math.isnan(session.trace[-1].apart)


# Changing prompts ---------------------------------------------------------------------------------


def test_the_latent_goes_along_a_great_circle(play):
    session = play("goal:stand@0").session
    session.picks_up = False
    run(session, 0.2)
    before = session.latent
    session.fade = 1.0
    session.ask(Prompt("goal", "wave", 2.0))
    target = session.prompted.latents[0]
    angles = []
    for _ in range(60):
        session.step()
        assert float(session.latent.norm()) == pytest.approx(float(before.norm()), rel=1e-5)
        cosine = float(session.latent.double() @ target.double() / len(target))
        angles.append(math.acos(min(1.0, cosine)))
    assert np.diff(angles).max() < 1e-3  # ever closer, but for rounding
    assert angles[24] == pytest.approx(angles[0] / 2, rel=0.15)
    assert torch.equal(session.latent, target)


def test_prompts_take_turns(play):
    show = play("wave", "goal:squat@1", "reward:move-ego-0-0.3")
    session = show.session
    assert session.every == 5.0
    session.every = 0.4
    seen = [session.prompted.prompt]
    end = time.monotonic() + 120
    while len(seen) < 4:
        assert time.monotonic() < end
        session.step()
        time.sleep(0.002)
        if session.prompted.prompt != seen[-1]:
            seen.append(session.prompted.prompt)
    assert [one.kind for one in seen] == ["motion", "goal", "reward", "motion"]
    session.every = 0.0
    now = session.prompted
    run(session, 1.0)
    assert session.prompted is now


def test_the_robot_goes_on_while_a_latent_is_looked_for(play):
    session = play("wave").session
    session.ask(Prompt("reward", "move-ego-0-0.3"))
    assert session.waiting == Prompt("reward", "move-ego-0-0.3")
    session.step()
    assert session.prompted.prompt.kind == "motion"
    ask(session, "reward:move-ego-0-0.3")
    assert session.prompted.prompt == Prompt("reward", "move-ego-0-0.3")
    # What cannot be found is said, and changes nothing.
    ask(session, "reward:move-ego-low0.2-0-0")
    assert "none of the" in session.problem
    assert session.prompted.prompt == Prompt("reward", "move-ego-0-0.3")
    session.ask(Prompt("motion", "bow"))
    assert session.problem == ""


def test_a_flood_of_rewards_does_not_pile_up(play):
    session = play("wave").session
    names = ("move-ego-0-0.3", "move-ego-90-0.3", "move-ego-180-0.3")
    for number in range(300):
        session.ask(Prompt("reward", names[number % 3]))
    begun = time.monotonic()
    while session.waiting is not None:
        session.advance(0.02)
        time.sleep(0.01)
        assert time.monotonic() - begun < 60
    assert session.prompted.prompt.name == names[299 % 3]
    assert len(session.prompter._found) <= 2  # what had begun, and the last


# What happens to the robot ------------------------------------------------------------------------


def test_a_fallen_robot_lies_and_is_put_back(play):
    session = play("wave").session
    session.push("forward", 3.0)
    while session.lying is None:
        session.advance(0.02)
        assert session.time < 5
    assert session.falls == 1
    assert str(session.pushed).startswith("push forward 3.00 m/s: fell after")
    assert session.upright < 1
    run(session, LYING + 0.1)
    assert session.lying is None
    assert session.qpos[2] > 0.6
    # Unless that is not wanted.
    session.picks_up = False
    session.push("forward", 3.0)
    run(session, LYING + 4)
    assert session.lying is not None
    session.restart()
    assert (session.falls, session.pushed, len(session.trace)) == (0, None, 0)
    np.testing.assert_allclose(session.ghost, session.qpos, atol=1e-9)


@pytest.mark.parametrize(("direction", "axis", "sign"), [("forward", 0, 1), ("right", 1, -1)])
def test_a_push_adds_a_velocity_in_the_robots_axes(play, direction, axis, sign):
    session = play("stand").session
    engine = session.env.engine
    engine.qpos[0, 3:7] = (math.cos(0.5), 0, 0, math.sin(0.5))
    before = engine.qvel[0, :2].copy()
    session.push(direction, 0.5)
    added = engine.qvel[0, :2] - before
    own = {0: (math.cos(1.0), math.sin(1.0)), 1: (-math.sin(1.0), math.cos(1.0))}[axis]
    np.testing.assert_allclose(added, 0.5 * sign * np.array(own), atol=1e-9)


def test_friction_and_payload_change_the_living_robot(play):
    session = play("stand").session
    run(session, 0.1)
    state = session.qpos
    session.change(friction=0.2, payload=5.0)
    np.testing.assert_array_equal(session.qpos, state)
    assert session.env.engine.friction.tolist() == [0.2]
    assert session.env.engine.base_mass.tolist() == [5.0]
    run(session, 0.2)
    assert session.env.engine.friction.tolist() == [0.2]


def test_poses_between_control_steps_are_interpolated(play):
    session = play("wave").session
    session.advance(0.03)  # simulated to 0.04
    early, ghost = session.poses()
    session.advance(0.01)
    late, later = session.poses()
    assert np.abs(late - early).max() > 0
    np.testing.assert_allclose(late, session.qpos, atol=1e-9)
    np.testing.assert_allclose(later, session.ghost, atol=1e-9)
    assert ghost is not None
