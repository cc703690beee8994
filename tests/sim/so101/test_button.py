"""The sprung button, pushed slowly by a force without any arm."""

import mujoco
import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor.sim.so101.arm import SERVOS
from prism_motor.sim.so101.button import Button
from prism_motor.sim.so101.scenes import MouseClick, PressKey


class Pushed:
    """A scene of which one button is pushed down, the thing lying on the table."""

    def __init__(self, scene, button):
        self.model = scene.build(SERVOS["soft"])
        self.data = mujoco.MjData(self.model)
        self.body = self.model.body(button).id
        self.place = int(self.model.joint(button).qposadr[0])
        self.push(0.0, 300)

    def push(self, force, steps=150):
        """Hold a force until nothing moves; return the depth, m."""
        self.data.xfrc_applied[self.body, 2] = -force
        for _ in range(steps):
            mujoco.mj_step(self.model, self.data)
        return float(self.data.qpos[self.place])


def closing_force(scene, button):
    pushed = Pushed(scene, button)
    for force in np.arange(0.2, 1.2, 0.01):
        if pushed.push(force, 60) >= scene.button.threshold:
            return force
    raise AssertionError("it never closes")


@pytest.mark.parametrize(
    ("scene", "button"), [(MouseClick(), "left_button"), (PressKey(), "key_d")]
)
def test_it_closes_at_its_force(scene, button):
    assert closing_force(scene, button) == pytest.approx(0.6, abs=0.03)


def test_force_and_preload_are_parameters():
    heavy = MouseClick(Button(force=0.9, preload=0.5, threshold=0.001))
    assert closing_force(heavy, "left_button") == pytest.approx(0.9, abs=0.03)
    pushed = Pushed(heavy, "left_button")
    assert pushed.push(0.47) < 2e-5
    assert pushed.push(0.55) == pytest.approx(0.05 / heavy.button.stiffness, rel=0.05)


def test_it_does_not_move_before_the_preload_and_the_stop_hardly_yields():
    pushed = Pushed(MouseClick(), "left_button")
    assert pushed.push(0.28) < 1e-5
    assert pushed.push(0.45, 600) == pytest.approx(0.000375, rel=0.03)
    for force in (1.0, 5.0, 20.0):
        assert pushed.push(force) - 0.0015 < 0.0002
    assert pushed.push(0.0, 300) < 1e-5


def test_impossible_buttons_are_refused():
    with pytest.raises(InputError, match="closes before its stop"):
        Button(threshold=0.002)
    with pytest.raises(InputError, match="closes before its stop"):
        Button(release=0.0009)
    with pytest.raises(InputError, match=r"above button\.preload \(0\.7 N\)"):
        Button(preload=0.7)
    with pytest.raises(InputError, match=r"button\.travel"):
        Button(travel=1.0)
