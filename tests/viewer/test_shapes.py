import io

import mujoco
import numpy as np
import pytest
import trimesh

from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model
from prism_motor.viewer.shapes import body_meshes, geom_mesh, rgb

SHAPES = """
<mujoco>
  <asset><mesh name="tetra" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset>
  <worldbody>
    <body name="b">
      <freejoint/>
      <geom type="sphere" size="0.1" pos="1 0 0"/>
      <geom type="ellipsoid" size="0.1 0.2 0.3"/>
      <geom type="capsule" size="0.1 0.2"/>
      <geom type="cylinder" size="0.1 0.2" euler="90 0 0"/>
      <geom type="box" size="0.1 0.2 0.3"/>
      <geom type="mesh" mesh="tetra" pos="0 0 2"/>
    </body>
  </worldbody>
</mujoco>"""


def test_every_shape_has_its_size_and_place():
    model = mujoco.MjModel.from_xml_string(SHAPES)
    expected = [
        ((0.9, -0.1, -0.1), (1.1, 0.1, 0.1)),
        ((-0.1, -0.2, -0.3), (0.1, 0.2, 0.3)),
        ((-0.1, -0.1, -0.3), (0.1, 0.1, 0.3)),
        ((-0.1, -0.2, -0.1), (0.1, 0.2, 0.1)),
        ((-0.1, -0.2, -0.3), (0.1, 0.2, 0.3)),
        ((0.0, 0.0, 2.0), (1.0, 1.0, 3.0)),
    ]
    for geom, (low, high) in enumerate(expected):
        np.testing.assert_allclose(geom_mesh(model, geom).bounds, (low, high), atol=2e-3)


@pytest.mark.parametrize("name", ["g1", "quadruped"])
def test_robots_become_one_coloured_mesh_a_body(name):
    model = build_model(make_robot(name), timestep=0.005)
    meshes = body_meshes(model, {(26, 107, 184): (213, 94, 0)})
    assert 0 not in meshes  # the ground is no part of the robot
    assert len(meshes) == model.nbody - 1
    colours = set()
    for glb in meshes.values():
        scene = trimesh.load_scene(io.BytesIO(glb), file_type="glb")
        for mesh in scene.geometry.values():
            assert len(mesh.faces) > 10
            colours.add(tuple(mesh.visual.material.baseColorFactor[:3].tolist()))
    assert len(colours) == 3
    # Linear light: 213 on a screen is a share of 0.665.
    assert max(colour[0] / 255 for colour in colours if colour[2] == 0) == pytest.approx(
        ((213 / 255 + 0.055) / 1.055) ** 2.4, abs=0.01
    )


def test_colours_are_read():
    assert rgb("#D55E00") == (213, 94, 0)
