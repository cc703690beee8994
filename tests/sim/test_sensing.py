import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prism_motor.sim import rendering, sensing
from prism_motor.sim.rendering import RenderingError
from prism_motor.sim.sensing import CameraRenderer, contact_forces

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
    renderer = CameraRenderer(model, 64)
    quick = [renderer.render(data, camera, 64) for camera in ("far", "near")]
    left_out = [sensing._outside(model, data, camera).sum() for camera in (0, 1)]
    monkeypatch.setattr(sensing, "_outside", lambda *_: np.zeros(model.ngeom, dtype=bool))
    whole = [renderer.render(data, camera, 64) for camera in ("far", "near")]
    renderer.close()
    assert_array_equal(quick, whole)
    assert min(left_out) > 20
    assert_array_equal(model.geom_group, groups)


def test_hidden_groups_and_larger_images(scene):
    model, data = scene
    both, visual = CameraRenderer(model, 32), CameraRenderer(model, 32, hidden=[0])
    assert np.any(both.render(data, "far", 32) != visual.render(data, "far", 32))
    assert visual.render(data, "far", 80).shape == (80, 80, 3)
    both.close()
    assert visual.render(data, "near", 32).std() > 5  # another renderer's end does not disturb it
    visual.close()


def test_the_stock_renderer_keeps_what_the_fast_one_leaves_out(scene):
    model, data = scene
    samples = model.vis.quality.offsamples
    stock = CameraRenderer(model, 48, renderer="stock")
    assert model.vis.quality.offsamples == samples > 0
    slow = stock.render(data, "far", 48)
    stock.close()
    fast = CameraRenderer(model, 48)
    assert model.vis.quality.offsamples == 0
    quick = fast.render(data, "far", 48)
    fast.close()
    # Edges are mixtures of colours where pixels are sampled more than once.
    colours = [len(np.unique(image.reshape(-1, 3), axis=0)) for image in (slow, quick)]
    assert colours[0] > colours[1]


def test_images_are_scaled_by_the_mean_of_their_pixels():
    image = np.random.default_rng(0).integers(0, 256, (12, 12, 3), dtype=np.uint8)
    means = image.reshape(4, 3, 4, 3, 3).mean((1, 3))
    np.testing.assert_allclose(sensing.scale(image, 4), means, atol=1.0)
    assert sensing.scale(image, 12) is image


def test_the_square_in_the_middle_is_cut_out():
    wide = np.arange(4 * 7 * 3, dtype=np.uint8).reshape(4, 7, 3)
    assert_array_equal(sensing.crop_square(wide), wide[:, 1:5])
    tall = wide.transpose(1, 0, 2)
    assert_array_equal(sensing.crop_square(tall), tall[1:5])
    assert_array_equal(sensing.crop_square(wide[:, :4]), wide[:, :4])


def test_a_backend_that_does_not_work_is_named(scene, monkeypatch):
    monkeypatch.setattr(rendering, "find_backend", lambda: "nothing")
    with pytest.raises(RenderingError, match=r"MUJOCO_GL=nothing.*Unset it"):
        CameraRenderer(scene[0], 32)


RESTING = """<mujoco><option timestep="0.002"/><worldbody>
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
    model = mujoco.MjModel.from_xml_string(RESTING)
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
