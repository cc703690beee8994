import mujoco
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prism_motor.manipulation import drawing
from prism_motor.manipulation.sensing import CameraRenderer
from prism_motor.sim.rendering import RenderingError

RANDOM = np.random.default_rng(0)
BALLS = "".join(
    f'<geom type="sphere" size="{RANDOM.uniform(0.02, 0.4):.2f}" pos="{x:.2f} {y:.2f} {z:.2f}" '
    f'group="1" rgba="{x % 1:.2f} {y % 1:.2f} {z % 1:.2f} 1"/>'
    for x, y, z in RANDOM.uniform(-3, 3, (200, 3))
)
SCENE = f"""<mujoco><worldbody><light pos="0 0 3"/>{BALLS}
  <geom name="ground" type="plane" size="5 5 .1" pos="0 0 -2" group="1"/>
  <geom name="collision" type="box" size=".1 .1 .1" pos="0 0.6 0" group="0"/>
  <camera name="far" pos="0 -2 0.5" xyaxes="1 0 0 0 0 1" fovy="40"/>
  <camera name="near" pos="0 0 0" xyaxes="0 1 0 0 0 1" fovy="90"/>
</worldbody></mujoco>"""


@pytest.fixture
def scene():
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def test_leaving_out_what_is_not_seen_changes_no_pixel(scene, monkeypatch):
    model, data = scene
    groups = model.geom_group.copy()
    pen = CameraRenderer(model, 64)
    quick = [pen.draw(data, camera, 64) for camera in ("far", "near")]
    left_out = [drawing._outside(model, data, camera).sum() for camera in (0, 1)]
    monkeypatch.setattr(drawing, "_outside", lambda *_: np.zeros(model.ngeom, dtype=bool))
    whole = [pen.draw(data, camera, 64) for camera in ("far", "near")]
    pen.close()
    assert_array_equal(quick, whole)
    assert min(left_out) > 20
    assert_array_equal(model.geom_group, groups)


def test_hidden_groups_and_larger_pictures(scene):
    model, data = scene
    both, visual = CameraRenderer(model, 32), CameraRenderer(model, 32, hidden=[0])
    assert np.any(both.draw(data, "far", 32) != visual.draw(data, "far", 32))
    assert visual.draw(data, "far", 80).shape == (80, 80, 3)
    both.close()
    assert visual.draw(data, "near", 32).std() > 5  # another drawing's end does not disturb it
    visual.close()


def test_a_backend_that_does_not_work_is_named(scene, monkeypatch):
    monkeypatch.setattr(drawing, "find_backend", lambda: "nothing")
    with pytest.raises(RenderingError, match=r"MUJOCO_GL=nothing.*Unset it"):
        CameraRenderer(scene[0], 32)
