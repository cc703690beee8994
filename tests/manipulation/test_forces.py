import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

from prism_motor.manipulation.sensing import contact_forces

SCENE = """<mujoco><option timestep="0.002"/><worldbody>
  <body name="hand" pos="0 0 1">
    <geom type="box" size=".2 .2 .02" mass="1"/>
    <body name="finger" pos="0.3 0 0"><joint type="slide" axis="1 0 0" range="-.2 .2"/>
      <geom type="box" size=".09 .2 .02" mass="1"/></body>
  </body>
  <body name="cup" pos="0 0 1.07"><freejoint/>
    <geom type="box" size=".05 .05 .05" mass="0.4"/></body>
  <body name="lid" pos="0 0 1.18"><freejoint/>
    <geom type="box" size=".04 .04 .05" mass="0.1"/></body>
</worldbody></mujoco>"""


@pytest.fixture
def resting():
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    for _ in range(2000):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return model, data


def test_a_hand_feels_the_weight_that_lies_on_it(resting):
    model, data = resting
    ids = [model.body(name).id for name in ("hand", "finger", "cup")]
    hand, finger, cup = contact_forces(model, data, ids)
    assert_allclose(
        hand, 0.0, atol=1e-6
    )  # cup and hand are both asked for: their contact is left out
    assert_allclose(cup, [0.0, 0.0, -0.1 * 9.81], atol=0.02)  # what the lid does to it
    alone = contact_forces(model, data, ids[:1])[0]
    assert_allclose(alone, [0.0, 0.0, -0.5 * 9.81], atol=0.02)
    assert_allclose(finger, 0.0, atol=1e-6)


def test_forces_come_in_pairs(resting):
    model, data = resting
    below = contact_forces(model, data, [model.body("hand").id])[0]
    above = contact_forces(model, data, [model.body("cup").id, model.body("lid").id]).sum(0)
    assert_allclose(below, -above, atol=1e-9)
    assert np.linalg.norm(below) > 4
