"""What counts as a click, a press and a push."""

import numpy as np
import pytest

from prism_motor.sim.so101 import HOME, Twin
from prism_motor.sim.so101.kinematics import gravity_torques, inverse
from prism_motor.sim.so101.scenes.cube import ZONE
from prism_motor.sim.so101.units import to_lerobot


def put_tip(twin, place, frames=40, pitch=1.1):
    """Move the tip to a place and wait until the arm came to rest."""
    angles = inverse(place, pitch)
    start = twin.targets
    targets = to_lerobot(angles + gravity_torques(angles) / twin.servos.kp)
    for frame in range(frames + 20):
        twin.step(start + min(1.0, frame / frames) * (targets - start))


def click(twin, place, depth=0.012, pitch=1.1):
    for height in (0.03, -depth, 0.03):
        put_tip(twin, place + np.array([0, 0, height]), pitch=pitch)


@pytest.fixture
def mouse():
    twin = Twin("mouse-click-v0", cameras=())
    twin.reset(seed=1)
    return twin


def test_nothing_happens_while_the_arm_waits(mouse):
    for _ in range(60):
        mouse.step(HOME)
    outcome = mouse.outcome
    assert not any((outcome.pressed, outcome.released, outcome.success, outcome.lenient))
    assert outcome.time_to_press is None
    assert outcome.peak_force == 0
    assert outcome.displacement < 1e-4
    assert outcome.failure == "no contact"


def test_a_click_is_a_press_and_a_release(mouse):
    target = mouse.target
    put_tip(mouse, target + np.array([0, 0, 0.03]))
    assert not mouse.outcome.pressed
    before = mouse.time
    put_tip(mouse, target - np.array([0, 0, 0.012]))
    pressed = mouse.outcome
    assert pressed.pressed
    assert pressed.lenient
    assert not pressed.released
    assert not pressed.success
    assert pressed.failure == "stuck"
    assert before < pressed.time_to_press < mouse.time
    assert pressed.peak_force > 0.6
    put_tip(mouse, target + np.array([0, 0, 0.03]))
    done = mouse.outcome
    assert done.released
    assert done.success
    assert done.failure is None
    assert done.time_to_press == pressed.time_to_press
    assert done.double_clicks == 0
    click(mouse, target)
    assert mouse.outcome.double_clicks == 1


def test_a_touch_that_is_too_light_is_no_press(mouse):
    click(mouse, mouse.target, depth=0.0)
    assert 0 < mouse.outcome.peak_force < 0.6
    assert not mouse.outcome.pressed
    assert mouse.outcome.failure == "too light"


def test_the_other_side_of_the_mouse_is_beside_the_target(mouse):
    click(mouse, mouse.target - np.array([0.0, 0.033, 0.0]))
    assert mouse.outcome.peak_force > 0.6
    assert not mouse.outcome.pressed
    assert mouse.outcome.failure == "beside the target"


def test_a_mouse_that_was_pushed_away_does_not_count(mouse):
    start = mouse.target.copy()
    side = start + np.array([0.0, 0.06, -0.01])
    put_tip(mouse, side + np.array([0, 0, 0.06]))
    put_tip(mouse, side)
    put_tip(mouse, side - np.array([0, 0.065, 0]))
    put_tip(mouse, side + np.array([0, -0.03, 0.06]))
    assert mouse.outcome.displacement > 0.02
    click(mouse, mouse.target)
    outcome = mouse.outcome
    assert outcome.lenient
    assert outcome.released
    assert not outcome.success
    assert outcome.failure == "pushed it away"


def test_a_button_that_something_else_presses_does_not_count(mouse):
    body = mouse.model.body("left_button").id
    mouse.data.xfrc_applied[body, 2] = -1.0
    for _ in range(10):
        mouse.step(HOME)
    assert mouse.data.joint("left_button").qpos[0] > 0.00075
    assert not mouse.outcome.pressed


def test_a_neighbouring_key_is_the_wrong_one():
    twin = Twin("press-key-v0", cameras=())
    twin.reset(pose=(0.215, 0.0, 0.0))
    target = twin.target
    click(twin, target + np.array([0, 0.019, 0]), pitch=1.55)
    outcome = twin.outcome
    assert not outcome.pressed
    assert outcome.wrong_presses >= 1
    assert outcome.failure == "beside the target"
    click(twin, target, pitch=1.55)
    assert twin.outcome.pressed
    assert twin.outcome.lenient
    assert not twin.outcome.success
    twin.reset(pose=(0.215, 0.0, 0.0))
    click(twin, target, depth=0.006, pitch=1.55)
    assert twin.outcome.success
    assert twin.outcome.wrong_presses == 0


def test_a_cube_must_lie_in_the_zone_untouched_and_still():
    twin = Twin("push-cube-v0", cameras=())
    twin.reset(seed=1)
    put_tip(twin, [0.14, 0.0, 0.05], pitch=1.3)
    assert not twin.outcome.lenient
    place = int(twin.model.joint("cube").qposadr[0])
    # A cube that arrives without the arm is in the zone, but nobody pushed it.
    twin.data.qpos[place : place + 2] = ZONE
    twin.step(HOME)
    assert twin.outcome.lenient
    assert not twin.outcome.success
    beside = [ZONE[0], ZONE[1] + 0.05, 0.012]
    put_tip(twin, [*beside[:2], 0.05], pitch=1.2)
    put_tip(twin, beside, pitch=1.2)
    put_tip(twin, [ZONE[0], ZONE[1] + 0.015, 0.012], pitch=1.2)
    assert twin.outcome.pressed
    assert twin.outcome.failure == "other"
    assert not twin.outcome.released
    assert not twin.outcome.success
    put_tip(twin, [ZONE[0], ZONE[1] + 0.06, 0.012], pitch=1.2)
    assert twin.outcome.success
    assert twin.outcome.peak_force > 0
