from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from prism_motor.analysis.live import TopInteractions
from prism_motor.locomotion.tasks import TASKS
from prism_motor.viewer.pushes import SURVIVED, describe_divergence
from prism_motor.viewer.walking.loading import load_walkers
from prism_motor.viewer.walking.scene import within
from prism_motor.viewer.walking.session import Session
from prism_motor.viewer.walking.show import _status
from prism_motor.viewer.walking.walker import LYING, Walker

MLP, GATED = 0, 1


def run(session, seconds, step=0.02):
    for _ in range(round(seconds / step)):
        session.advance(step)


def stand(observations):
    return torch.zeros(len(observations), 12)


def collapse(observations):
    return torch.full((len(observations), 12), 18.0)


def make_walker(policy, task="laptop", name="robot"):
    return Walker(name, policy, TASKS[task])


# Under a trained policy ---------------------------------------------------------------------------


def test_the_robot_follows_the_command_and_its_change(make_session):
    session = make_session(GATED, command=(0.0, 0.0, 0.0))
    walker = session.leader
    run(session, 2.0)
    assert np.abs(walker.velocity).max() < 0.1
    session.tell((0.5, 0.0, 0.0))
    run(session, 4.0)
    assert walker.velocity[0] == pytest.approx(0.5, abs=0.15)
    session.tell((0.0, 0.0, 0.5))
    run(session, 4.0)
    assert walker.velocity[0] == pytest.approx(0.0, abs=0.1)
    assert walker.velocity[2] == pytest.approx(0.5, abs=0.15)
    assert walker.falls == 0
    times, commands = np.array(walker.trace)[:, 0], np.array(walker.trace)[:, 1:4]
    assert times[-1] - times[0] == pytest.approx(10.0, abs=0.1)
    assert set(commands[:, 0].round(3)) == {0.0, 0.5}


def test_a_light_push_is_survived_and_a_hard_one_is_reported_and_recovered_from(make_session):
    session = make_session(GATED)
    walker = session.leader
    run(session, 2.0)
    sideways = walker.env.engine.qvel[0, 1]
    session.push("left", 0.3)
    assert walker.env.engine.qvel[0, 1] - sideways == pytest.approx(0.3, abs=0.01)
    assert str(walker.pushed) == "push left 0.30 m/s: …"
    run(session, SURVIVED + 0.1)
    assert str(walker.pushed) == "push left 0.30 m/s: survived"
    session.push("back", 3.0)
    run(session, 1.5)
    assert walker.lying is not None
    assert walker.falls == 1
    assert "fell after" in str(walker.pushed)
    place = walker.qpos[:2]
    run(session, LYING + 0.1)
    assert walker.lying is None
    assert np.linalg.norm(walker.qpos[:2] - place) < 0.5  # it stands up where it fell
    run(session, 2.0)
    assert walker.velocity[0] > 0.2


def test_policies_change_without_a_restart(make_session):
    session = make_session(MLP, GATED)
    session.show(0)
    run(session, 2.0)
    before = session.leader.qpos
    session.show(1)
    assert session.leader.name == "g1-prism"
    np.testing.assert_array_equal(session.leader.qpos, before)
    run(session, 2.0)
    assert session.leader.falls == 0
    assert session.leader.velocity[0] > 0.2
    session.show(0, 1)
    first, second = session.walking
    np.testing.assert_array_equal(first.qpos, second.qpos)
    run(session, 1.0)
    assert not np.array_equal(first.qpos, second.qpos)


def test_a_restart_begins_alike_for_both(make_session):
    session = make_session(MLP, GATED)
    run(session, 1.0)
    session.restart()
    first, second = session.walking
    np.testing.assert_array_equal(first.qpos, second.qpos)
    assert np.linalg.norm(first.qpos[:2]) < 1e-9
    pose = first.qpos
    session.restart()
    assert not np.array_equal(first.qpos, pose)


def test_the_tasks_own_commands_are_the_leaders_for_both():
    task = TASKS["laptop"]
    task = replace(task, commands=replace(task.commands, resample_after=0.5))
    walkers = [Walker(name, stand, task, seed=seed) for seed, name in enumerate("ab")]
    session = Session(walkers, None)
    drawn = set()
    for _ in range(8):
        run(session, 0.2)
        np.testing.assert_allclose(walkers[0].command, walkers[1].command, atol=0.05)
        drawn.add(round(float(walkers[0].command[1]), 4))
    assert len(drawn) == 4  # a new one every half second
    session.tell((0.1, 0.2, 0.3))
    run(session, 0.6)
    for walker in walkers:
        np.testing.assert_allclose(walker.command, (0.1, 0.2, 0.3), atol=1e-6)


def test_the_pair_has_products_where_there_are_any(cast):
    (mlp, without), (gated, top) = cast
    assert without is None
    assert isinstance(top, TopInteractions)
    values = top.update(gated.observation[0])
    assert len(values) == 6
    assert any(abs(value) > 1e-4 for _, value in values)
    assert mlp.colour != gated.colour


# The world ----------------------------------------------------------------------------------------


def test_friction_decides_how_far_a_robot_slides():
    slides = []
    for friction in (0.05, 1.0):
        walker = make_walker(stand)
        session = Session([walker], (0.0, 0.0, 0.0))
        run(session, 0.3)
        session.change(friction=friction, payload=0.0)
        start = walker.env.state.foot_position[0, :, 0].clone()
        session.push("forward", 0.5)
        run(session, 0.3)
        slides.append(float((walker.env.state.foot_position[0, :, 0] - start).abs().mean()))
    assert slides[0] > 2 * slides[1]


def test_payload_presses_on_the_feet():
    forces = []
    for payload in (0.0, 8.0):
        walker = make_walker(stand)
        session = Session([walker], (0.0, 0.0, 0.0))
        session.change(friction=0.8, payload=payload)
        total = []
        for _ in range(40):
            run(session, 0.02)
            total.append(float(walker.env.state.foot_force[0, :, 2].sum()))
        forces.append(np.mean(total[10:]))
    assert forces[1] - forces[0] == pytest.approx(8.0 * 9.81, rel=0.25)
    assert walker.env.base_mass[0] - walker.env.engine.model.body("pelvis").mass[0] == 8.0


def test_a_robot_that_never_stands_falls_again_and_again():
    walker = make_walker(collapse)
    session = Session([walker], (0.0, 0.0, 0.0))
    run(session, 6.0)
    assert walker.falls >= 2
    assert np.isfinite(walker.qpos).all()


def test_a_diverged_robot_is_picked_up():
    walker = make_walker(stand)
    session = Session([walker], (0.0, 0.0, 0.0))
    walker.env.engine.qvel[0, 0] = np.nan
    run(session, 0.1)
    assert np.isfinite(walker.qpos).all()


def test_walkers_of_different_rates_and_robots_share_one_clock():
    slow, fast, four = (make_walker(stand, task) for task in ("laptop", "g1", "quadruped"))
    session = Session([slow, fast, four], (0.2, 0.0, 0.0))
    run(session, 0.5, step=0.013)
    for walker in session.walkers:
        assert 0 <= walker.time - session.time <= walker.control_dt
    session.show(1)
    session.show(2)  # another robot: it begins anew at the same place
    assert four.time == fast.time
    np.testing.assert_array_equal(four.origin, fast.origin)


def test_poses_between_two_steps():
    walker = make_walker(stand)
    session = Session([walker], (0.0, 0.0, 0.0))
    run(session, 0.2)
    before = walker.qpos
    walker.step()
    after = walker.qpos
    np.testing.assert_allclose(walker.pose(walker.time), after, atol=1e-12)
    np.testing.assert_allclose(walker.pose(walker.time - walker.control_dt), before, atol=1e-12)
    middle = walker.pose(walker.time - walker.control_dt / 2)
    np.testing.assert_allclose(middle[:3], (before + after)[:3] / 2)
    assert np.linalg.norm(middle[3:7]) == pytest.approx(1.0)


# What is refused ----------------------------------------------------------------------------------


def test_bad_sessions_say_why(tmp_path):
    with pytest.raises(ValueError, match="at least one policy"):
        Session([], None)
    with pytest.raises(ValueError, match="three numbers"):
        Session([make_walker(stand)], (0.0, float("nan"), 0.0))
    with pytest.raises(ValueError, match="One or two policies"):
        load_walkers([Path("a"), Path("b"), Path("c")])
    with pytest.raises(Exception, match="No run found at"):
        load_walkers([tmp_path / "nothing"])
    wrong = make_walker(lambda observations: torch.zeros(1, 3))
    with pytest.raises(ValueError, match="actions of shape"):
        wrong.step()


def test_walkers_keep_the_task_that_they_were_trained_on():
    task = replace(TASKS["laptop"], start_height=0.9)
    walker = Walker("high", stand, task)
    assert walker.qpos[2] == pytest.approx(0.9)
    assert walker.task.randomisation.push_every == 4.0
    assert walker.env.cfg.randomisation.push_every == 0.0


# When physics diverges ----------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [1e8, 1e200, np.nan])
def test_physics_that_diverges_is_noticed_and_the_robot_starts_again_there(speed, recwarn):
    walker = make_walker(stand)
    for _ in range(5):
        walker.step()
    walker.env.engine.qpos[0, 0] += 2.0
    walker.step()
    place = walker.qpos[:2]
    walker.env.engine.qvel[0, 8:] = speed
    walker.step()
    assert walker.diverged == 1
    assert walker.falls == 0
    assert np.isfinite(walker.trace).all()
    np.testing.assert_allclose(walker.qpos[:2], place, atol=0.05)
    for _ in range(10):
        walker.step()
    assert walker.diverged == 1
    assert np.abs(walker.qpos).max() < 10
    assert not recwarn.list
    assert describe_divergence(walker.diverged) in _status(walker)


def test_robots_that_part_are_drawn_near_each_other():
    np.testing.assert_array_equal(within(np.array([0.3, -0.4]), 0.8), [0.3, -0.4])
    np.testing.assert_allclose(within(np.array([30.0, -40.0]), 0.8), [0.48, -0.64])
