import mujoco
import numpy as np
import pytest

from prism_motor.sim import Dynamics, RolloutEngine
from prism_motor.sim.robots import make_robot


def make(num_envs=4, dynamics=None, **kwargs):
    options = {"timestep": 0.002, "substeps": 5, "threads": 1, **kwargs}
    robot = make_robot("g1")
    engine = RolloutEngine(robot, num_envs, **options)
    if dynamics is not None:
        engine.set_dynamics(dynamics)
    place(engine, np.arange(num_envs))
    return engine


def place(engine, envs, height=0.79):
    qpos = np.zeros((len(envs), 19))
    qpos[:, 2], qpos[:, 3] = height, 1
    qpos[:, 7:] = engine.robot.default_pose
    engine.set_state(envs, qpos, np.zeros((len(envs), 18)))


def targets(engine, seed):
    rng = np.random.default_rng(seed)
    return engine.robot.default_pose + rng.uniform(-0.2, 0.2, (engine.num_envs, 12))


def test_equals_stepping_one_simulation_by_hand():
    engine = make()
    model, data = engine.model, mujoco.MjData(engine.model)
    data.qpos[:], data.qvel[:] = engine.qpos[2], engine.qvel[2]
    for i in range(20):
        command = targets(engine, i)
        engine.step(command)
        data.ctrl[:] = command[2]
        for _ in range(5):
            data.qacc_warmstart[:] = 0 if _ == 0 else data.qacc_warmstart
            mujoco.mj_step(model, data)
    np.testing.assert_allclose(engine.qpos[2], data.qpos, atol=1e-6)
    np.testing.assert_allclose(engine.qvel[2], data.qvel, atol=1e-4)


def test_thread_count_does_not_change_the_result():
    one, two = make(8, threads=1), make(8, threads=2)
    for i in range(10):
        one.step(targets(one, i))
        two.step(targets(two, i))
    np.testing.assert_array_equal(one.qpos, two.qpos)


def test_pd_torque_is_clipped_at_85_percent():
    engine = make(1)
    far = engine.robot.default_pose + 5.0
    engine.step(far[None])
    np.testing.assert_allclose(engine.torque()[0, :3], [74.8, 118.15, 74.8])


def test_friction_differs_per_environment():
    engine = make(2, dynamics=Dynamics(friction=np.array([0.05, 1.0])))
    for _ in range(20):
        engine.step(np.tile(engine.robot.default_pose, (2, 1)))
    engine.push(np.arange(2), np.array([[0.6, 0.0]] * 2), np.zeros((2, 3)))
    before = engine.sensor("left_ankle_roll_position")[:, 0].copy()
    for _ in range(8):
        engine.step(np.tile(engine.robot.default_pose, (2, 1)))
    slid = engine.sensor("left_ankle_roll_position")[:, 0] - before
    assert slid[0] > 3 * abs(slid[1])


def test_masses_differ_per_environment():
    engine = make(3, dynamics=Dynamics(base_mass=np.array([-3.0, 0.0, 3.0])))
    loads = []
    for _ in range(15):
        engine.step(np.tile(engine.robot.default_pose, (3, 1)))
        up = sum(engine.sensor(f"{foot}_force")[:, 2] for foot in engine.robot.feet)
        loads.append(-up)
    mean = np.mean(loads[5:], axis=0)
    assert mean[0] < mean[1] < mean[2]
    model = engine._models[2]
    assert model.body_mass.sum() == pytest.approx(32.107 + 3, abs=1e-3)
    ratio = model.body("pelvis").inertia / engine.model.body("pelvis").inertia
    np.testing.assert_allclose(ratio, 1 + 3 / 17.7349)


def test_payload_scales_masses_and_inertias():
    engine = make(1, dynamics=Dynamics(mass_scale=1.15))
    np.testing.assert_allclose(engine._models[0].body_mass, 1.15 * engine.model.body_mass)
    np.testing.assert_allclose(engine._models[0].body_inertia, 1.15 * engine.model.body_inertia)


def test_partial_reset_touches_only_its_environments_and_reads_sensors_at_once():
    engine = make(4)
    for i in range(5):
        engine.step(targets(engine, i))
    kept = engine.qpos[[0, 2]].copy()
    place(engine, np.array([1, 3]), height=1.0)
    np.testing.assert_array_equal(engine.qpos[[0, 2]], kept)
    heights = engine.sensor("left_ankle_roll_position")[[1, 3], 2]
    np.testing.assert_allclose(heights, 1.0 - 0.7842 + 0.035, atol=1e-3)
    assert np.all(engine.sensor("left_ankle_roll_force")[[1, 3]] == 0)


def test_state_dict_continues_exactly():
    engine = make(4)
    for i in range(5):
        engine.step(targets(engine, i))
    saved = engine.state_dict()
    for i in range(5, 10):
        engine.step(targets(engine, i))
    other = make(4)
    other.load_state_dict(saved)
    for i in range(5, 10):
        other.step(targets(other, i))
    np.testing.assert_array_equal(other.qpos, engine.qpos)
    np.testing.assert_array_equal(other.qvel, engine.qvel)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"threads": 0}, "threads"),
        ({"substeps": 0}, "substeps"),
        ({"dynamics": Dynamics(friction=0.0)}, "friction"),
        ({"dynamics": Dynamics(base_mass=-20.0)}, "without mass"),
    ],
)
def test_bad_settings_are_explained(kwargs, words):
    with pytest.raises(ValueError, match=words):
        make(**kwargs)


def test_resting_environments_stay_and_the_others_do_not_notice():
    all_move, some_rest = make(4), make(4)
    all_move.step(targets(all_move, 0))
    some_rest.step(targets(some_rest, 0))
    some_rest.rest(np.array([0, 2]))
    before = some_rest.state_dict()
    for i in range(1, 5):
        all_move.step(targets(all_move, i))
        some_rest.step(targets(some_rest, i))
    for moved in ("state", "readings"):
        after, full = some_rest.state_dict()[moved], all_move.state_dict()[moved]
        np.testing.assert_array_equal(after[[1, 3]], full[[1, 3]])
        np.testing.assert_array_equal(after[[0, 2]], before[moved][[0, 2]])
        assert (full[[0, 2]] != before[moved][[0, 2]]).any()


def test_links_have_masses_of_their_own():
    links = make(1).model.nbody - 1
    scale = np.random.default_rng(0).uniform(0.9, 1.1, (3, links))
    engine = make(3, dynamics=Dynamics(mass_scale=scale))
    for env in range(3):
        model = engine._models[env]
        np.testing.assert_allclose(model.body_mass[1:], scale[env] * engine.model.body_mass[1:])
        np.testing.assert_allclose(
            model.body_inertia[1:], scale[env][:, None] * engine.model.body_inertia[1:]
        )
        # What MuJoCo derives from masses follows: the mass below every body.
        np.testing.assert_allclose(model.body_subtreemass[1], model.body_mass[1:].sum())


def test_a_centre_of_mass_is_shifted_in_its_body_alone():
    shift = np.array([[0.02, 0.0, -0.01], [0.0, 0.0, 0.0]])
    engine = make(2, dynamics=Dynamics(shifted="pelvis", shift=shift))
    moved = engine._models[0].body_ipos - engine.model.body_ipos
    pelvis = engine.model.body("pelvis").id
    np.testing.assert_allclose(moved[pelvis], shift[0])
    assert np.count_nonzero(np.delete(moved, pelvis, axis=0)) == 0
    np.testing.assert_array_equal(engine._models[1].body_ipos, engine.model.body_ipos)
    for _ in range(10):
        engine.step(np.tile(engine.robot.default_pose, (2, 1)))
    assert np.abs(engine.qpos[0] - engine.qpos[1]).max() > 1e-5  # and it is felt


def test_environments_with_the_same_dynamics_share_a_model():
    engine = make(4, dynamics=Dynamics(friction=np.array([0.5, 0.7, 0.5, 0.7])))
    assert engine._models[0] is engine._models[2]
    assert engine._models[1] is engine._models[3]
    assert engine._models[0] is not engine._models[1]


def test_a_mass_that_is_not_positive_is_refused():
    scale = np.ones((1, make(1).model.nbody - 1))
    scale[0, 3] = 0.0
    with pytest.raises(ValueError, match=r"mass_scale must be positive, got 1 and 0\."):
        make(1, dynamics=Dynamics(mass_scale=scale))
