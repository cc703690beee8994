"""Robots from MJCF files: what is read, what is refused, and in which words."""

import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor.sim import Dynamics, RolloutEngine
from prism_motor.sim.robots import ROBOTS, Robot, make_robot, register_robot
from prism_motor.sim.scene import build_model, scene_xml

HOPPER = """
<mujoco model="hopper">
  <compiler angle="radian"/>
  <worldbody>
    <body name="trunk" pos="0 0 0.7">
      <freejoint/>
      <geom name="hull" type="box" size="0.1 0.1 0.1" mass="4"/>
      <body name="thigh" pos="0 0 -0.1">
        <joint name="hip_roll" axis="1 0 0" range="-0.6 0.6"/>
        <joint name="hip_pitch" axis="0 1 0" range="-1.5 1.5"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.03" mass="0.5" contype="0"
          conaffinity="0"/>
        <body name="shank" pos="0 0 -0.25">
          <joint name="knee" axis="0 1 0" range="-2.4 0"/>
          <geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.02" mass="0.2" contype="0"
            conaffinity="0"/>
          <body name="foot" pos="0 0 -0.25">
            <geom name="toe" type="sphere" size="0.03" mass="0.1"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>{actuators}</actuator>
</mujoco>"""

SERVOS = "".join(
    f'<position name="{joint}_servo" joint="{joint}" kp="60" kv="1.5" forcerange="-40 40"/>'
    for joint in ("knee", "hip_roll", "hip_pitch")  # not in the order of the joints
)
MOTORS = "".join(
    f'<motor joint="{joint}" gear="20" ctrlrange="-1.5 1.5"/>'
    for joint in ("hip_roll", "hip_pitch", "knee")
)
POSE = {"hip_pitch": 0.5, "knee": -1.0}


@pytest.fixture
def write(tmp_path):
    def save(xml=HOPPER, actuators=SERVOS, name="hopper.xml"):
        file = tmp_path / name
        file.write_text(xml.replace("{actuators}", actuators))
        return file

    return save


def read(file, **changes):
    options = {"name": "hopper", "feet": ("foot",), "default_pose": POSE, **changes}
    return Robot.from_mjcf(file, **options)


def test_joints_gains_and_limits_come_from_the_model(write):
    robot = read(write())
    assert robot.joint_names == ["hip_roll", "hip_pitch", "knee"]
    assert [(j.stiffness, j.damping, j.effort) for j in robot.joints] == [(60.0, 1.5, 40.0)] * 3
    np.testing.assert_allclose(robot.default_pose, [0, 0.5, -1.0])
    assert (robot.base, robot.feet, robot.knees, robot.mirror) == ("trunk", ("foot",), (), None)
    upright = 0.1 + 0.25 * (np.cos(0.5) + np.cos(0.5)) + 0.03
    assert robot.stand_height == pytest.approx(upright, abs=1e-6)
    assert robot.foot_offset == pytest.approx(0.03, abs=1e-6)
    model = build_model(robot, timestep=0.002)
    assert [model.actuator(i).name for i in range(model.nu)] == robot.joint_names
    assert {model.sensor(i).name for i in range(model.nsensor)} == {
        "foot_force", "trunk_force", "foot_position", "foot_velocity",
    }  # fmt: skip


def test_motors_become_servos_with_the_given_gains(write):
    robot = read(write(actuators=MOTORS), stiffness=50.0, damping={"hip_roll": 2.0} | dict.fromkeys(
        ("hip_pitch", "knee"), 1.0))  # fmt: skip
    assert [j.damping for j in robot.joints] == [2.0, 1.0, 1.0]
    assert [j.effort for j in robot.joints] == [30.0] * 3  # 1.5 times the gear
    model = build_model(robot, timestep=0.002)
    np.testing.assert_allclose(model.actuator_gainprm[:, 0], 50.0)
    np.testing.assert_allclose(model.actuator_biasprm[:, 1], -50.0)
    np.testing.assert_allclose(model.actuator_forcerange[:, 1], 0.85 * 30)
    np.testing.assert_allclose(model.actuator_gear[:, 0], 1.0)


def test_velocity_limits_are_given_or_unknown(write):
    assert [joint.velocity for joint in read(write()).joints] == [None] * 3
    assert [joint.velocity for joint in read(write(), velocity=20.0).joints] == [20.0] * 3
    with pytest.raises(InputError, match=r"no velocity for hip_roll, knee: .*Give velocity="):
        read(write(), velocity={"hip_pitch": 20.0})
    with pytest.raises(InputError, match="velocity of hip_roll must be positive"):
        read(write(), velocity=-1.0)


def test_servos_behind_a_gear_are_read_on_the_side_of_the_joint(write):
    geared = SERVOS.replace('kp="60"', 'kp="60" gear="2"')
    joint = read(write(actuators=geared)).joints[0]
    assert (joint.stiffness, joint.damping, joint.effort) == (240.0, 6.0, 80.0)


def test_it_stands_and_its_friction_is_that_of_its_feet(write):
    robot = read(write())
    engine = RolloutEngine(robot, 2, timestep=0.002, substeps=5)
    engine.set_dynamics(Dynamics(friction=np.array([0.05, 1.2])))
    toe = engine.model.geom("toe").id
    assert [m.geom_friction[toe, 0] for m in engine._models] == [0.05, 1.2]
    assert engine.model.geom_priority[toe] > engine.model.geom_priority[0]
    qpos = np.zeros((2, 10))
    qpos[:, 2], qpos[:, 3], qpos[:, 7:] = robot.stand_height, 1, robot.default_pose
    engine.set_state(np.arange(2), qpos, np.zeros((2, 9)))
    for _ in range(5):
        engine.step(qpos[:, 7:])
    assert (-engine.sensor("foot_force")[:, 2] > 10).all()


def test_other_joints_are_held_where_the_pose_has_them(write):
    full = read(write())
    part = read(write(), joints=("knee", "hip_roll"))  # in any order
    assert part.joint_names == ["hip_roll", "knee"]
    assert part.locked == (("hip_pitch", 0.5),)
    assert part.stand_height == pytest.approx(full.stand_height, abs=1e-9)

    def place(robot, angles):
        model = build_model(robot, timestep=0.002)
        data = mujoco.MjData(model)
        data.qpos[7:] = angles
        mujoco.mj_kinematics(model, data)
        return data.body("foot").xpos.copy()

    np.testing.assert_allclose(place(part, [0.3, -1.0]), place(full, [0.3, 0.5, -1.0]), atol=1e-9)


@pytest.mark.parametrize("orientation", ['euler="0.2 0.1 0.3"', 'quat="0.9 0.1 0.3 0.2"'])
def test_a_held_joint_turns_about_its_own_anchor_and_axis(write, orientation):
    xml = HOPPER.replace('name="shank" pos', f'name="shank" {orientation} pos')
    xml = xml.replace('name="knee" axis="0 1 0"', 'name="knee" axis="0 2 1" pos="0.02 0 -0.1"')
    full, part = read(write(xml)), read(write(xml), joints=("hip_roll", "hip_pitch"))
    places = []
    for robot in (full, part):
        model = build_model(robot, timestep=0.002)
        data = mujoco.MjData(model)
        data.qpos[7:] = robot.default_pose
        mujoco.mj_kinematics(model, data)
        places.append(data.body("foot").xpos.copy())
    np.testing.assert_allclose(places[0], places[1], atol=1e-9)


def test_a_keyframe_gives_the_default_pose(write):
    key = '<keyframe><key name="home" qpos="0 0 .5 1 0 0 0 0.1 0.4 -0.8"/></keyframe></mujoco>'
    file = write(HOPPER.replace("</mujoco>", key))
    np.testing.assert_allclose(read(file, default_pose="home").default_pose, [0.1, 0.4, -0.8])
    with pytest.raises(InputError, match=r"keyframe of .*'hom'.*'home'"):
        read(file, default_pose="hom")


def test_includes_and_meshes_are_found_from_the_file(tmp_path, write):
    (tmp_path / "parts").mkdir()
    corners = [(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, -0.2)]
    faces = ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + faces
    (tmp_path / "parts" / "shoe.obj").write_text("\n".join(lines))
    (tmp_path / "extra.xml").write_text(
        '<mujocoinclude><asset><mesh name="shoe" file="shoe.obj" scale="0.5 0.5 0.5"/></asset>'
        "</mujocoinclude>"
    )
    xml = HOPPER.replace('angle="radian"', 'angle="radian" meshdir="parts"')
    xml = xml.replace("<worldbody>", '<include file="extra.xml"/><worldbody>', 1)
    xml = xml.replace('type="sphere" size="0.03"', 'type="mesh" mesh="shoe"')
    robot = read(write(xml))
    assert robot.stand_height > 0.1 + 0.5 * np.cos(0.5)
    ours = build_model(robot, timestep=0.002)
    # The export holds the mesh itself: nothing else is needed to compile it elsewhere.
    alone = mujoco.MjModel.from_xml_string(scene_xml(robot, timestep=0.002))
    for name in ("body_mass", "body_inertia", "geom_pos", "body_pos", "actuator_gainprm"):
        np.testing.assert_allclose(getattr(alone, name), getattr(ours, name), atol=1e-8)
    assert alone.nmesh == 1


def test_a_model_with_a_ground_of_its_own_keeps_it(write):
    floor = '<worldbody><geom name="floor" type="plane" size="5 5 1"/><light pos="0 0 3"/>'
    model = build_model(read(write(HOPPER.replace("<worldbody>", floor, 1))), timestep=0.002)
    planes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    assert [model.geom(int(i)).name for i in planes] == ["floor"]
    assert model.nlight == 1


def test_mirror_by_joint_names(write):
    robot = read(
        write(), mirror={"hip_roll": "-hip_roll", "hip_pitch": "hip_pitch", "knee": "knee"}
    )
    assert robot.mirror == (0, 1, 2)
    assert robot.mirror_sign == (-1, 1, 1)
    with pytest.raises(InputError, match=r"mirror has no entry for hip_pitch, knee"):
        read(write(), mirror={"hip_roll": "-hip_roll"})
    with pytest.raises(InputError, match=r"two entries for 'hip_roll'"):
        read(
            write(), mirror={"hip_roll": "-hip_roll", "knee": "hip_roll", "hip_pitch": "hip_pitch"}
        )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<freejoint/>", '<joint type="slide" axis="0 0 1"/>', r"exactly one free joint.*none"),
        ("<freejoint/>", "", r"Put <freejoint/> into the trunk's body"),
        ('name="trunk"', "", r"free joint has no name"),
        ('name="knee" axis="0 1 0"', 'name="knee" type="slide" axis="0 0 1"', r"'knee'.*slide"),
        ('joint name="hip_roll"', "joint", r"joint without a name"),
        ('mass="0.1"', 'mass="0.1" contype="0" conaffinity="0"', r"foot 'foot' has no geom.*trunk"),
        ("</mujoco>", "<nonsense/></mujoco>", r"(?s)MuJoCo cannot read .*hopper.xml.*nonsense"),
        ('name="toe"', 'name="ground"', r"cannot compile the model of hopper.*ground"),
    ],
)
def test_models_that_do_not_fit_are_refused(write, old, new, words):
    actuators = "" if 'joint name="hip_roll"' in old else SERVOS
    with pytest.raises(InputError, match=words):
        read(write(HOPPER.replace(old, new, 1), actuators=actuators))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"feet": ("toe",)}, r"foot body of .*'toe'"),
        ({"feet": ()}, r"at least one foot"),
        ({"feet": ("foot", "foot")}, r"listed twice"),
        ({"base": "thigh"}, r"free joint is on the body 'trunk', not on 'thigh'"),
        ({"knees": ("kne",)}, r"knee body of"),
        ({"knees": ("shank", "thigh")}, r"one knee per foot; got 2 and 1"),
        ({"joints": ("hip",)}, r"joint of .*'hip'"),
        ({"joints": ()}, r"joints is empty"),
        ({"default_pose": {"knee": 0.4}}, r"'knee' at 0.4 rad, outside its range -2.4 to 0"),
        ({"default_pose": {"ankle": 0.4}}, r"'ankle'"),
        ({"stiffness": {"ankle": 1.0}}, r"in stiffness 'ankle'"),
        ({"stiffness": -5.0}, r"stiffness of hip_roll must be positive, got -5"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(write, options, words):
    with pytest.raises(InputError, match=words):
        read(write(), **options)


def test_motors_without_gains_are_refused_with_advice(write):
    with pytest.raises(InputError, match=r"no stiffness for hip_roll, .*have motors.*stiffness="):
        read(write(actuators=MOTORS))
    with pytest.raises(InputError, match=r"no stiffness for .*the model has none"):
        read(write(actuators=""))
    with pytest.raises(InputError, match=r"no effort for .*Give effort="):
        read(write(actuators=""), stiffness=40.0, damping=1.0)
    tendon = (
        '</actuator><tendon><fixed name="t"><joint joint="knee" coef="1"/></fixed></tendon>'
        '<actuator><motor name="pull" tendon="t"/>'
    )
    with pytest.raises(InputError, match=r"actuator 'pull' does not move a joint"):
        read(write(actuators=tendon))


def test_loose_bodies_are_refused(write):
    box = '<body name="box"><joint name="hinge"/><geom size="0.1"/></body></worldbody>'
    with pytest.raises(InputError, match=r"'hinge' of the body 'box' is not part of the robot"):
        read(write(HOPPER.replace("</worldbody>", box)))


def test_an_odd_number_of_feet_has_no_mirror_image(write):
    shoes = "".join(f'<body name="foot{i}"><geom size="0.02"/></body>' for i in (2, 3))
    xml = HOPPER.replace('<body name="foot"', shoes + '<body name="foot"')
    robot = read(write(xml), feet=("foot", "foot2", "foot3"))
    assert len(robot.feet) == 3
    with pytest.raises(InputError, match=r"3 feet cannot be mirrored"):
        read(write(xml), feet=robot.feet, mirror={"knee": "knee"})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"no MJCF file .*nothing\.xml"):
        read(tmp_path / "nothing.xml")


def test_robots_are_registered_once_and_built_in_ones_stay(write):
    file = write()

    def bouncer():
        return read(file, name="bouncer")

    try:
        register_robot("bouncer", bouncer)
        register_robot("bouncer", bouncer)
        assert make_robot("bouncer").joint_names == ["hip_roll", "hip_pitch", "knee"]
        with pytest.raises(InputError, match=r"'bouncer' is already registered"):
            register_robot("bouncer", lambda: read(file))
        with pytest.raises(InputError, match=r"built-in robot called 'g1'"):
            register_robot("g1", bouncer)
        register_robot("jumper", bouncer)
        with pytest.raises(InputError, match=r"registered as 'jumper' is named 'bouncer'"):
            make_robot("jumper")
        with pytest.raises(InputError, match=r"'my robot' cannot be the name"):
            register_robot("my robot", bouncer)
    finally:
        for name in ("bouncer", "jumper"):
            ROBOTS.remove(name)
    with pytest.raises(InputError, match=r"Unknown robot 'bouncer'.*--plugin MODULE"):
        make_robot("bouncer")


def test_a_robot_is_rebuilt_in_another_process_from_its_name_and_module(tmp_path, write):
    write()
    (tmp_path / "my_robot.py").write_text(
        "from pathlib import Path\n"
        "from prism_motor.sim.robots import Robot, register_robot\n"
        "FILE = Path(__file__).with_name('hopper.xml')\n"
        "def hopper():\n"
        f"    return Robot.from_mjcf(FILE, name='hopper', feet=('foot',), default_pose={POSE})\n"
        "register_robot('hopper', hopper)\n"
    )
    code = (
        "import my_robot; from prism_motor.sim.robots import make_robot; "
        "print(make_robot('hopper').stand_height)"
    )
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{tmp_path}:{source}", "PATH": ""},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    here = read(tmp_path / "hopper.xml").stand_height
    assert float(done.stdout) == here
