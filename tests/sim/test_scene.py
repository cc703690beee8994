"""Scenes are composed from the robot's model; what is written out is the same robot."""

import mujoco
import numpy as np
import pytest

from prism_motor.sim import build_model, make_robot, scene_xml
from prism_motor.sim.meshes import picture_model

PHYSICS = (
    "body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia", "jnt_axis",
    "jnt_range", "dof_armature", "dof_damping", "geom_friction", "geom_priority", "geom_contype",
    "geom_conaffinity", "actuator_gainprm", "actuator_biasprm", "actuator_forcerange",
    "body_invweight0", "dof_invweight0", "qpos0", "sensor_type", "sensor_objid", "sensor_intprm",
)  # fmt: skip


@pytest.mark.parametrize("name", ["g1", "g1-29", "quadruped"])
def test_what_is_written_out_is_the_same_robot_to_the_last_digit(name):
    robot = make_robot(name)
    ours = build_model(robot, timestep=0.005)
    text = scene_xml(robot, timestep=0.005)
    written = mujoco.MjModel.from_xml_string(text)
    for field in PHYSICS:
        np.testing.assert_array_equal(getattr(written, field), getattr(ours, field), err_msg=field)
    assert [written.geom(i).name for i in range(3)] == [ours.geom(i).name for i in range(3)]
    assert written.opt.timestep == 0.005
    assert written.opt.iterations == ours.opt.iterations == 20
    assert written.opt.disableflags == ours.opt.disableflags != 0


@pytest.mark.parametrize(("version", "limits"), [(1, (5, 8)), (2, (20, 20))])
def test_a_version_of_the_solver_has_its_limits(version, limits):
    robot = make_robot("g1")
    built = build_model(robot, timestep=0.005, solver=version)
    written = mujoco.MjModel.from_xml_string(scene_xml(robot, timestep=0.005, solver=version))
    for model in (built, written):
        assert (model.opt.iterations, model.opt.ls_iterations) == limits


@pytest.mark.parametrize("name", ["g1", "g1-29", "quadruped"])
def test_physics_has_no_textures_and_pictures_have_them(name):
    robot = make_robot(name)
    model, drawn = build_model(robot, timestep=0.005), picture_model(robot, primitives=True)
    assert (model.ntex, model.ntexdata) == (0, 0)
    assert {drawn.tex(i).name for i in range(drawn.ntex)} == {"sky", "ground"}
    assert len(model.geom("ground").matid) == 1
    # What an engine of 4096 robots holds of each.
    assert mujoco.mj_sizeModel(model) < 150_000


def test_servos_and_sensors_follow_from_the_robot():
    robot = make_robot("quadruped")
    model = build_model(robot, timestep=0.002)
    assert [model.actuator(i).name for i in range(model.nu)] == robot.joint_names
    np.testing.assert_allclose(model.actuator_gainprm[:3, 0], [50, 50, 60])
    names = [model.sensor(i).name for i in range(model.nsensor)]
    assert names[:5] == [*(f"{foot}_force" for foot in robot.feet), "trunk_force"]
    assert f"{robot.knees[0]}_position" in names


def test_warnings_of_mujoco_are_logged_and_leave_no_file(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    model = build_model(make_robot("quadruped"), timestep=0.005)
    data = mujoco.MjData(model)
    data.qvel[0] = np.nan
    mujoco.mj_step(model, data)
    assert "The simulation is unstable" in caplog.text
    assert list(tmp_path.iterdir()) == []
