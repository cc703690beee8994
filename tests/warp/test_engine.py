"""MuJoCo Warp steps, resets, pushes and saves the robots as MuJoCo itself does.

Feet are spheres. Where a capsule touches the ground at more than 60 degrees, MuJoCo lays the
contact's pyramid of friction along the capsule and MuJoCo Warp 4.0 along the world's axes, so some
robots that have fallen slide differently.
"""

from functools import cache

import mujoco
import numpy as np
import pytest
import torch

from prism_motor.sim import Dynamics, RolloutEngine
from prism_motor.sim.engines import EngineChoice
from prism_motor.sim.robots import make_robot

ENVS = 16
# Largest differences of positions, velocities and forces after a control step from the same state:
# a few times what was measured. The 29-joint robot has physics steps of 5 ms.
ROBOTS = {"g1": (2e-6, 5e-4, 1.0), "quadruped": (2e-6, 5e-4, 1.0), "g1-29": (8e-6, 1e-3, 1.0)}
EVERYONE = np.arange(ENVS)


def physics(name):
    return {"timestep": 0.005, "substeps": 4} if name == "g1-29" else {
        "timestep": 0.001, "substeps": 10,
    }  # fmt: skip


def dynamics(name, model):
    random = np.random.default_rng(1)
    return Dynamics(
        friction=random.uniform(0.35, 1.3, ENVS),
        base_mass=random.uniform(-1, 1, ENVS),
        mass_scale=random.uniform(0.95, 1.05, (ENVS, model.nbody - 1)),
        shifted=make_robot(name).base,
        shift=random.uniform(-0.02, 0.02, (ENVS, 3)),
    )


@cache  # recording a graph takes seconds
def engines(name):
    robot = make_robot(name)
    warp = EngineChoice("gpu").make(robot, ENVS, **physics(name))
    native = RolloutEngine(robot, ENVS, **physics(name))
    for engine in (warp, native):
        engine.set_dynamics(dynamics(name, native.model))
    return warp, native


def standing(robot, height=0.0):
    qpos = np.zeros((ENVS, 7 + len(robot.joints)))
    qpos[:, 2], qpos[:, 3], qpos[:, 7:] = robot.stand_height + height, 1.0, robot.default_pose
    return qpos, np.zeros((ENVS, 6 + len(robot.joints)))


def stand(*both):
    for engine in both:
        engine.set_state(EVERYONE, *standing(engine.robot))


def targets(robot, random):
    wanted = robot.default_pose + 0.25 * random.standard_normal((ENVS, len(robot.joints)))
    return wanted.astype(np.float32)


def differences(warp, native):
    forces = tuple(f"{foot}_force" for foot in native.robot.feet)
    pairs = [
        (warp.qpos, native.qpos),
        (warp.qvel, native.qvel),
        (warp.sensors(forces).flatten(1), native.sensors(forces).reshape(ENVS, -1)),
    ]
    return np.stack([np.abs(one.numpy() - two).max(1) for one, two in pairs], axis=1)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_control_step_is_that_of_mujoco(name):
    warp, native = engines(name)
    stand(warp, native)
    random = np.random.default_rng(0)
    feet = tuple(f"{foot}_force" for foot in native.robot.feet)
    touching, unlike = 0, 0
    for _ in range(40):
        warp.qpos.copy_(torch.from_numpy(native.qpos.copy()))
        warp.qvel.copy_(torch.from_numpy(native.qvel.copy()))
        native.qpos[:], native.qvel[:] = warp.qpos.numpy(), warp.qvel.numpy()
        before, wanted = native.state_dict(), targets(native.robot, random)
        for engine in (warp, native):
            engine.step(wanted)
        touching += np.count_nonzero(native.sensors(feet).any((1, 2)))
        off = (differences(warp, native) > ROBOTS[name]).any(1)
        if not off.any():
            continue
        # Whether a foot just touches may hang on the last digit: then MuJoCo itself ends there,
        # from a start that is the same in float32.
        after, unlike = native.state_dict(), unlike + np.count_nonzero(off)
        for _ in range(16):
            native.load_state_dict(before)
            native.qpos[:] *= 1 + 6e-8 * random.standard_normal(native.qpos.shape)
            native.step(wanted)
            off &= (differences(warp, native) > ROBOTS[name]).any(1)
        assert not off.any()
        native.load_state_dict(after)
    warp.check()
    assert touching > 0.2 * 40 * ENVS
    assert unlike <= 0.01 * 40 * ENVS


def test_torques_are_those_of_mujoco():
    warp, native = engines("g1")
    stand(warp, native)
    wanted = 3 * targets(native.robot, np.random.default_rng(7))
    for engine in (warp, native):
        engine.step(wanted)
    assert (np.abs(native.torque()) == native.torque_limit).any()
    np.testing.assert_allclose(warp.torque().numpy(), native.torque(), atol=1e-2)


@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_has_the_constants_of_its_model(name):
    warp, native = engines(name)
    for field in ("geom_friction", "body_mass", "body_inertia", "body_ipos", "body_subtreemass",
                  "body_invweight0", "dof_invweight0"):  # fmt: skip
        expected = np.stack([getattr(model, field) for model in native._models])
        found = getattr(warp._physics, field).numpy()
        np.testing.assert_array_equal(found, expected.astype(np.float32), err_msg=field)
    assert len({model.body_mass.tobytes() for model in native._models}) == ENVS
    np.testing.assert_array_equal(warp.friction, native.friction)


def test_a_replayed_graph_is_bit_equal_to_single_launches():
    warp, _ = engines("g1")
    random = np.random.default_rng(2)
    plan = [targets(warp.robot, random) for _ in range(10)]
    ends = []
    for advance in (warp._advance, warp._advance_eagerly):
        stand(warp)
        for wanted in plan:
            warp._targets.copy_(torch.from_numpy(wanted))
            advance()
        ends.append((warp.qpos.clone(), warp.qvel.clone(), warp._sensed.clone()))
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_a_saved_state_goes_on_bit_for_bit():
    warp, _ = engines("g1")
    random = np.random.default_rng(3)
    stand(warp)
    for _ in range(5):
        warp.step(targets(warp.robot, random))
    saved = warp.state_dict()
    plan = [targets(warp.robot, random) for _ in range(10)]
    ends = []
    for _ in range(2):
        for wanted in plan:
            warp.step(wanted)
        ends.append(warp.state_dict())
        stand(warp)
        warp.load_state_dict(saved)
        assert all(torch.equal(warp.state_dict()[name], saved[name]) for name in saved)
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in saved)


def test_placing_some_robots_leaves_the_readings_of_others():
    warp, native = engines("g1")
    random = np.random.default_rng(4)
    stand(warp, native)
    for _ in range(5):
        wanted = targets(native.robot, random)
        warp.step(wanted), native.step(wanted)
    before = warp.readings.clone()
    placed = np.array([2, 5])
    qpos, qvel = standing(native.robot, 0.3)
    for engine in (warp, native):
        engine.set_state(placed, qpos[placed], qvel[placed])
    others = np.setdiff1d(EVERYONE, placed)
    assert torch.equal(warp.readings[others], before[others])
    np.testing.assert_allclose(warp.readings.numpy(), native._readings, atol=0.1)
    feet = tuple(f"{foot}_position" for foot in native.robot.feet)
    np.testing.assert_allclose(
        warp.sensors(feet).numpy()[placed], native.sensors(feet)[placed], atol=1e-6
    )


def test_a_push_overwrites_velocities():
    warp, native = engines("g1")
    stand(warp, native)
    envs = np.array([1, 3])
    for engine in (warp, native):
        engine.push(envs, np.full((2, 2), 0.5), np.full((2, 3), -0.25))
    np.testing.assert_array_equal(warp.qvel.numpy(), native.qvel)


def test_robots_at_rest_stay_while_others_move():
    warp = EngineChoice("gpu").make(make_robot("g1"), ENVS, **physics("g1"))
    stand(warp)
    warp.rest(np.array([3]))
    warp.rest(torch.tensor([7]))
    before = warp.state_dict()
    for _ in range(3):
        warp.step(targets(warp.robot, np.random.default_rng(5)))
    after = warp.state_dict()
    for name in ("qpos", "qvel", "readings"):
        same = (before[name] == after[name]).all(1).nonzero().squeeze(-1).tolist()
        assert same == [3, 7], name


def test_more_contacts_than_there_is_room_for_are_an_error():
    from prism_motor.sim.warp_engine import ContactOverflowError

    warp = EngineChoice("gpu", contacts=1).make(make_robot("g1"), ENVS, **physics("g1"))
    stand(warp)
    warp.check()
    for _ in range(20):
        warp.step(np.tile(warp.robot.default_pose, (ENVS, 1)))
    with pytest.raises(
        ContactOverflowError, match=r"16 of 16 robots .*1 contact, .*NEFC.* --contacts 2"
    ):
        warp.check()
    warp.check()  # the next update counts anew


@pytest.mark.parametrize(("tilt", "agree"), [(0, True), (45, True), (75, False)])
def test_steep_capsules_have_another_pyramid_of_friction(tilt, agree):
    """If the last case fails, the engines agree on all robots that fall: then test those too."""
    warp, native = engines("g1")
    qpos, qvel = standing(native.robot)
    # The trunk in the ground, rolled, and turned by 45 degrees about the vertical.
    qpos[:, 2], half = 0.05, np.deg2rad(tilt) / 2
    roll, yaw = [np.cos(half), np.sin(half), 0, 0], [np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8)]
    turned = np.zeros(4)
    mujoco.mju_mulQuat(turned, np.array(yaw), np.array(roll))
    qpos[:, 3:7] = turned
    warp.set_state(EVERYONE, qpos, qvel)
    data = mujoco.MjData(native.model)
    data.qpos[:] = qpos[0]
    mujoco.mj_forward(native.model, data)
    trunk = native.model.geom("pelvis_contact").id
    tangent = next(one.frame[3:6] for one in data.contact if trunk in one.geom)
    contact = warp._data.contact
    found = contact.frame.numpy()[(contact.geom.numpy() == trunk).any(1)][0].ravel()[3:6]
    np.testing.assert_allclose(np.abs(tangent), [np.sqrt(0.5), np.sqrt(0.5), 0], atol=1e-6)
    assert np.allclose(np.abs(found), np.abs(tangent), atol=1e-5) == agree


def test_on_the_host_the_same_states_are_arrays():
    name, random = "g1-29", np.random.default_rng(6)
    host = EngineChoice("gpu").make(make_robot(name), ENVS, on_host=True, **physics(name))
    warp, native = engines(name)
    host.set_dynamics(dynamics(name, native.model))
    stand(host, warp)
    wanted = targets(host.robot, random)
    host.step(wanted), warp.step(wanted)
    assert host.qpos.dtype == host.qvel.dtype == np.float64
    names = tuple(f"{foot}_velocity" for foot in host.robot.feet)

    def agree():
        np.testing.assert_array_equal(host.qpos, warp.qpos.numpy())
        np.testing.assert_array_equal(host.qvel, warp.qvel.numpy())
        np.testing.assert_array_equal(host.sensors(names), warp.sensors(names).numpy())

    agree()
    qpos, qvel = standing(host.robot, 0.1)
    for engine in (host, warp):
        engine.set_state(np.array([4]), qpos[:1], qvel[:1])
        engine.push(np.array([5]), np.full((1, 2), 0.3), np.full((1, 3), 0.1))
    agree()
    saved = host.state_dict()
    host.step(wanted)
    host.load_state_dict(saved)
    agree()
