"""Models to draw: meshes where a package ships them, and never another physics."""

import sys

import mujoco
import numpy as np
import pytest

from prism_motor.sim.meshes import find_meshes, picture_model
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model

MESH = mujoco.mjtGeom.mjGEOM_MESH

needs_meshes = pytest.mark.skipif(
    find_meshes(make_robot("g1")) is None,
    reason="mjlab is not installed (it ships the G1's meshes and pins other mujoco versions)",
)


@pytest.fixture(autouse=True)
def _compile_anew():
    picture_model.cache_clear()
    yield
    picture_model.cache_clear()


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder whose packages are found first, whatever was imported before."""
    monkeypatch.delitem(sys.modules, "mjlab", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def frames(model, qpos):
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    return data


def any_pose(seed):
    random = np.random.default_rng(seed)
    qpos = np.concatenate([random.normal(size=7), random.uniform(-0.6, 0.6, 12)])
    qpos[3:7] /= np.linalg.norm(qpos[3:7])
    return qpos


@pytest.mark.parametrize("name", ["g1", "g1-29", "quadruped"])
def test_without_meshes_the_picture_is_our_own_model(name):
    robot = make_robot(name)
    drawn, ours = picture_model(robot, primitives=True), build_model(robot, timestep=0.005)
    assert MESH not in drawn.geom_type
    for field in ("geom_type", "geom_pos", "geom_size", "geom_rgba", "body_mass"):
        np.testing.assert_array_equal(getattr(drawn, field), getattr(ours, field))


def test_a_robot_that_nobody_ships_meshes_of_is_drawn_as_it_is():
    assert find_meshes(make_robot("quadruped")) is None
    assert MESH not in picture_model(make_robot("quadruped")).geom_type


def test_a_package_without_the_expected_file_is_as_good_as_none(packages):
    (packages / "mjlab").mkdir()
    (packages / "mjlab" / "__init__.py").touch()
    assert find_meshes(make_robot("g1")) is None
    assert MESH not in picture_model(make_robot("g1")).geom_type


def tetrahedron(offset):
    """A mesh file whose vertices MuJoCo will move, since they are not around the origin."""
    corners = np.array([[0, 0, 0], [0.03, 0, 0], [0, 0.05, 0], [0, 0, 0.11]]) + offset
    faces = ((1, 3, 2), (1, 2, 4), (1, 4, 3), (2, 3, 4))
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in corners]
    return "\n".join(lines + [f"f {a} {b} {c}" for a, b, c in faces]), corners


def test_meshes_land_on_our_bodies_and_what_is_locked_goes_with_the_next_one(packages):
    folder = packages / "mjlab" / "asset_zoo" / "robots" / "unitree_g1" / "xmls"
    (folder / "parts").mkdir(parents=True)
    (packages / "mjlab" / "__init__.py").touch()
    obj, corners = tetrahedron([0.2, -0.1, 0.4])
    for name in ("shin", "hand"):
        (folder / "parts" / f"{name}.obj").write_text(obj)
    (folder / "g1.xml").write_text("""
<mujoco><compiler meshdir="parts"/>
  <asset><mesh name="s" file="shin.obj"/><mesh name="h" file="hand.obj"/>
    <material name="black" rgba="0.1 0.1 0.1 1"/></asset>
  <worldbody><geom type="mesh" mesh="s"/>
  <body name="pelvis" pos="1 2 3"><freejoint/>
    <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <body name="arm_link" pos="0.1 0.2 0.3" euler="0 0 90"><joint/>
      <geom type="mesh" mesh="h" pos="0 0 0.5" euler="90 0 0" material="black"/></body>
    <body name="left_knee_link" pos="0 0 -9"><joint/><geom type="mesh" mesh="s"/></body>
  </body></worldbody></mujoco>""")
    robot = make_robot("g1")
    model = picture_model(robot)
    data = frames(model, any_pose(1))
    geoms = {model.body(model.geom_bodyid[g]).name: g for g in np.flatnonzero(model.geom_type == 7)}
    assert set(geoms) == {"pelvis", "left_knee"}

    def drawn(name):
        """The corners as the body sees them."""
        geom, body = geoms[name], model.body(name).id
        first = model.mesh_vertadr[model.geom_dataid[geom]]
        world = model.mesh_vert[first : first + 4] @ data.geom_xmat[geom].reshape(3, 3).T
        world = world + data.geom_xpos[geom] - data.xpos[body]
        seen = world @ data.xmat[body].reshape(3, 3)
        return seen[np.lexsort(seen.round(5).T)]

    def turned(x, y, z):  # 90 degrees about x, up by 0.5, 90 degrees about z, then along
        x, y, z = x, -z, y + 0.5
        x, y, z = -y, x, z
        return x + 0.1, y + 0.2, z + 0.3

    def ordered(points):
        points = np.array(points)
        return points[np.lexsort(points.round(5).T)]

    np.testing.assert_allclose(drawn("left_knee"), ordered(corners), atol=1e-6)
    np.testing.assert_allclose(drawn("pelvis"), ordered([turned(*c) for c in corners]), atol=1e-6)
    assert model.geom_rgba[geoms["pelvis"]].mean() < model.geom_rgba[geoms["left_knee"]].mean()


# With the real ones -----------------------------------------------------------------------------


@needs_meshes
def test_bodies_masses_and_contacts_are_ours():
    robot = make_robot("g1")
    drawn, ours = picture_model(robot), build_model(robot, timestep=0.005)
    assert (drawn.geom_type == MESH).sum() > 30
    for field in ("body_mass", "body_inertia", "jnt_range", "actuator_gainprm", "dof_armature"):
        np.testing.assert_array_equal(getattr(drawn, field), getattr(ours, field))
    for seed in range(3):
        one, two = frames(drawn, any_pose(seed)), frames(ours, any_pose(seed))
        np.testing.assert_array_equal(one.xpos, two.xpos)
        np.testing.assert_array_equal(one.xquat, two.xquat)
    for model in (drawn, ours):
        touching = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
        assert not (touching & (model.geom_type == MESH)).any()
        assert touching.sum() == 11  # ground, two on the trunk, four under each foot


@needs_meshes
def test_the_soles_are_where_the_robot_touches_the_ground():
    robot = make_robot("g1")
    model = picture_model(robot)
    data = frames(model, np.r_[0, 0, robot.stand_height, 1, 0, 0, 0, robot.default_pose])
    for foot in robot.feet:
        heights = []
        for geom in np.flatnonzero(model.geom_bodyid == model.body(foot).id):
            if model.geom_type[geom] == MESH:
                mesh = model.geom_dataid[geom]
                first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
                turned = (
                    model.mesh_vert[first : first + count] @ data.geom_xmat[geom].reshape(3, 3).T
                )
                heights.append((turned + data.geom_xpos[geom])[:, 2].min())
        assert min(heights) == pytest.approx(0.0, abs=0.01)
