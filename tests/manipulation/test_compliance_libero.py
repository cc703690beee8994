"""The force estimate and the corrector on LIBERO's Panda, with its own controller."""

import numpy as np
import pytest

from prism_motor.manipulation.compliance import (
    contact_force,
    estimated_force,
    exerted_force,
    make_corrector,
)
from prism_motor.manipulation.tasks import find_task, make_environment

DOWN = np.array([0, 0, -0.6, 0, 0, 0, -1.0])


@pytest.fixture(scope="module")
def scene(libero):
    environment = make_environment(
        find_task("libero_goal", "turn_on_the_stove"), cameras=(), stiffness=50.0
    )
    yield environment
    environment.close()


def hold(scene, force, steps):
    """Hold the hand where it is while a force acts on the point between the finger pads."""
    scene.reset(seed=1, images=False)
    goal, data, hand = scene.physics().position, scene._data, scene._body
    try:
        for _ in range(steps):
            tip = data.site_xpos[scene._site]
            data.xfrc_applied[hand] = [*force, *np.cross(tip - data.xipos[hand], force)]
            action = np.zeros(7)
            action[:3], action[6] = np.clip((goal - tip) / 0.05, -1, 1), -1.0
            scene.step(action, images=False)
        return scene.physics()
    finally:
        data.xfrc_applied[hand] = 0.0


@pytest.mark.parametrize("force", [(0, -15.0, 0), (8.0, 6.0, 12.0)])
def test_a_known_force_is_found_within_three_per_cent(scene, force):
    physics = hold(scene, force, steps=40)
    error = np.linalg.norm(estimated_force(physics) + force)
    # At rest: what is left is the damping of the estimate, and the last creeping of the arm.
    assert error < 0.03 * np.linalg.norm(force)
    # The weight of arm and hand, were it left in, is larger than the force itself.
    heavy = exerted_force(physics.jacobian[:3], physics.joint_torques)
    assert np.linalg.norm(heavy + force) > 30.0


def test_an_untouched_arm_at_rest_feels_nothing(scene):
    assert np.linalg.norm(estimated_force(hold(scene, (0, 0, 0), steps=5))) < 0.01


def test_the_controller_is_as_stiff_as_asked_for_after_every_reset(scene):
    for seed in (1, 2):
        scene.reset(seed=seed, images=False)
        controller = scene.problem.robots[0].controller
        np.testing.assert_allclose(controller.kp, 50.0)
        np.testing.assert_allclose(controller.kd, 2 * np.sqrt(50.0))  # damping ratio one
    for _ in range(15):
        scene.step(0.5 * DOWN, images=False)
    # Kp times the way to the goal, in the mean over a step of 50 ms, balances Kd times the speed.
    speed = 0.5 * 0.6 * 0.05 * 50 / (2 * np.sqrt(50) + 0.025 * 50)
    assert scene.physics().velocity[2] == pytest.approx(-speed, rel=0.1)


def test_stiffness_without_sense_is_refused(libero):
    task = find_task("libero_goal", 7)
    with pytest.raises(ValueError, match="must be positive"):
        make_environment(task, stiffness=0.0)


@pytest.mark.parametrize("name", ["mcc-sensorless", "mcc-oracle"])
def test_a_hand_that_presses_on_the_cabinet_yields(scene, name):
    def press(corrector):
        scene.reset(initial_state=0, images=False)
        physics = scene.physics()
        for step in range(45):
            action = DOWN if step >= 15 else np.array([0, -1.0, 0, 0, 0, 0, -1])
            if corrector is not None:
                action = corrector.correct(action, physics)
            scene.step(action, images=False)
            physics = scene.physics()
        return physics, action[2] - DOWN[2]

    plain, _ = press(None)
    truth = contact_force(plain)
    assert truth[2] < -30.0
    assert np.linalg.norm(estimated_force(plain) - truth) < 0.05 * np.linalg.norm(truth)
    corrector = make_corrector(name, scene)
    corrector.reset(0)
    softer, raised = press(corrector)
    assert raised == pytest.approx(0.05)  # 37 N times 0.015 is clipped
    assert contact_force(softer)[2] > 0.9 * truth[2]
