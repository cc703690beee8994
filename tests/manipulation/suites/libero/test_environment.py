import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prism_motor.manipulation.tasks import find_task, make_environment
from prism_motor.manipulation.workers import EpisodeJob, run_episodes

STOVE = "turn_on_the_stove"
REST = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
DOWN = np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def environment(libero):
    environment = make_environment(find_task("libero_goal", STOVE), image_size=64)
    yield environment
    environment.close()


@pytest.fixture
def simulation(environment):
    sim = environment.problem.sim
    return sim.model._model, sim.data._data


def random_actions(count, seed=0):
    return np.clip(np.random.default_rng(seed).normal(0.0, 0.7, (count, 7)), -1.0, 1.0)


def turn_knob(simulation, angle):
    model, data = simulation
    data.qpos[model.joint("flat_stove_1_button").qposadr[0]] = angle


def test_what_is_observed(environment):
    seen = environment.reset(initial_state=0)
    assert seen.state.shape == (len(environment.state_names),) == (8,)
    assert seen.state.dtype == seen.objects.dtype == np.float32
    assert seen.objects.shape == (len(environment.object_names),)
    values = dict(zip(environment.object_names, seen.objects, strict=True))
    assert values["flat_stove_1_button"] == pytest.approx(0.0, abs=1e-3)
    assert -0.42 <= values["flat_stove_1_x"] <= -0.40  # the region that the task gives it
    assert list(seen.images) == ["agentview", "robot0_eye_in_hand"]
    for image in seen.images.values():
        assert image.shape == (64, 64, 3)
        assert image.dtype == np.uint8
        assert image.std() > 10
    step = environment.step(REST, images=False)
    assert step.observation.images == {}
    assert environment.frame(96).shape == (96, 96, 3)


def test_fixed_initial_states_are_those_of_the_file(environment, simulation):
    _, data = simulation
    assert environment.initial_states == 50
    for state in (0, 17):
        environment._problem.reset(state, state)
        assert_array_equal(data.qpos, environment._problem.fixed[state, 1 : 1 + data.qpos.size])
    first = environment.reset(initial_state=3, images=False)
    environment.reset(initial_state=4, images=False)
    again = environment.reset(initial_state=3, images=False)
    assert_array_equal(first.state, again.state)
    assert_array_equal(first.objects, again.objects)


def test_seeds_decide_everything_whatever_happened_before(environment, simulation):
    _, data = simulation
    before = np.random.get_state()[1].copy()
    environment.reset(seed=5, images=False)
    first = data.qpos.copy()
    for action in random_actions(5):
        environment.step(action, images=False)
    turn_knob(simulation, 1.0)
    environment.step(REST, images=False)
    environment.reset(seed=2**40, images=False)
    other = data.qpos.copy()
    environment.reset(seed=5, images=False)
    assert_array_equal(data.qpos, first)
    assert np.abs(other - first).max() > 1e-3
    assert_array_equal(np.random.get_state()[1], before)  # the program's own numbers are untouched


def test_resets_without_a_seed_follow_the_seed_of_the_environment(environment):
    environment._seeds = np.random.default_rng(9)
    first = [environment.reset(images=False).objects for _ in range(2)]
    environment._seeds = np.random.default_rng(9)
    again = [environment.reset(images=False).objects for _ in range(2)]
    assert_array_equal(first, again)
    assert np.abs(first[0] - first[1]).max() > 0


def test_random_resets_avoid_the_fixed_states(environment, simulation, monkeypatch):
    _, data = simulation
    environment._problem.reset(11)
    drawn = np.concatenate([[0.0], data.qpos, data.qvel])
    fixed = np.vstack([environment._problem.fixed, drawn])
    monkeypatch.setattr(environment._problem, "fixed", fixed)
    environment._problem.reset(11)
    assert np.abs(data.qpos - drawn[1 : 1 + data.qpos.size]).max() > 1e-3


def test_going_on_after_success_and_after_the_horizon(environment, simulation, monkeypatch):
    short = dataclasses.replace(environment.task, horizon=2)
    monkeypatch.setattr(environment, "task", short)
    environment.reset(initial_state=0, images=False)
    first = environment.step(REST, images=False)
    assert (first.success, first.timeout) == (False, False)
    turn_knob(simulation, 1.0)
    second = environment.step(REST, images=False)
    assert (second.success, second.timeout) == (True, True)
    third = environment.step(REST, images=False)
    assert (third.success, third.timeout) == (True, True)


def test_measuring_and_drawing_change_nothing(environment):
    def run(look):
        environment.reset(initial_state=1, images=False)
        states = []
        for action in np.vstack([random_actions(4), np.tile(DOWN, (12, 1))]):
            states.append(environment.step(action, images=look).observation.state)
            if look:
                environment.physics()
                environment.frame(32)
        return np.array(states)

    assert_array_equal(run(look=True), run(look=False))


def test_images_are_upright_and_mirrored_as_lerobot_flips_them(environment, simulation):
    model, data = simulation
    environment.reset(initial_state=0)
    camera = model.camera("agentview").id
    place = data.body("plate_1_main").xpos.copy()
    seen = (place - data.cam_xpos[camera]) @ data.cam_xmat[camera].reshape(3, 3)
    scale = 32.0 / np.tan(np.deg2rad(model.cam_fovy[camera]) / 2.0)
    column = 32.0 + scale * seen[0] / -seen[2]  # from the left, as a person would see it
    row = 32.0 - scale * seen[1] / -seen[2]
    before = environment.step(REST).observation.images["agentview"].astype(int)
    address = model.joint(environment.problem.get_object("plate_1").joints[0]).qposadr[0]
    data.qpos[address : address + 3] = (0.0, 0.0, -3.0)  # away with it
    after = environment.step(REST).observation.images["agentview"].astype(int)
    rows, columns = np.nonzero(np.abs(after - before).sum(-1) > 30)
    assert rows.mean() == pytest.approx(row, abs=2.5)
    assert columns.mean() == pytest.approx(64.0 - column, abs=2.5)


def test_the_jacobian_is_the_derivative_of_the_pose(environment, simulation):
    _, data = simulation
    environment.reset(initial_state=2, images=False)
    for action in random_actions(6):
        environment.step(action, images=False)
    now = environment.physics()
    robot = environment.problem.robots[0]
    moving = now.jacobian @ now.joint_velocities
    assert_allclose(now.velocity, moving, atol=1e-9)
    assert np.abs(now.velocity).max() > 0.05
    start = data.qpos.copy()
    for joint, address in enumerate(robot._ref_joint_pos_indexes):
        step = 1e-6
        data.qpos[address] = start[address] + step
        there = environment.physics()
        data.qpos[:] = start
        assert_allclose((there.position - now.position) / step, now.jacobian[:3, joint], atol=1e-4)
        turn = 2.0 * quaternion_product(there.quaternion, now.quaternion * [1, -1, -1, -1])[1:]
        assert_allclose(turn / step, now.jacobian[3:, joint], atol=1e-4)


def quaternion_product(a, b):
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.array([w, *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])


def test_contact_force_balances_what_the_joints_feel(environment, simulation):
    """The force on the hand, mapped to the joints, is the constraint force of the simulation."""
    _, data = simulation
    environment.reset(initial_state=0, images=False)
    assert environment.physics().largest_force == 0.0
    dofs = environment.problem.robots[0]._ref_joint_vel_indexes
    pressed = []
    for _ in range(40):
        environment.step(DOWN, images=False)
        now = environment.physics()
        if now.largest_force > 5.0:
            wrench = np.linalg.lstsq(now.jacobian.T, data.qfrc_constraint[dofs], rcond=None)[0]
            assert_allclose(now.contact_force, wrench[:3], atol=0.02 * now.largest_force)
            pressed.append(now)
    assert len(pressed) > 5
    assert pressed[-1].contact_force[2] > 5.0  # the table pushes up
    still = pressed[-1]
    # At rest, the actuators carry gravity and what the table gives back.
    carried = still.joint_torques - still.bias_torques + still.jacobian[:3].T @ still.contact_force
    unloaded = still.joint_torques - still.bias_torques
    assert np.linalg.norm(carried) < 0.5 * np.linalg.norm(unloaded)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(6), "has 7 values"),
        (np.zeros((1, 7)), "has 7 values"),
        (np.full(7, np.nan), "must be finite"),
        (np.array([np.inf, 0, 0, 0, 0, 0, 0]), "must be finite"),
    ],
)
def test_bad_actions_are_refused(environment, action, message):
    environment.reset(initial_state=0, images=False)
    with pytest.raises(ValueError, match=message):
        environment.step(action)


def test_a_diverged_simulation_is_an_error_until_the_next_reset(
    environment, simulation, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log there
    _, data = simulation
    first = environment.reset(initial_state=0, images=False)
    data.qvel[0] = 1e12
    for _ in range(2):
        with pytest.raises(FloatingPointError, match="diverged"):
            environment.step(REST, images=False)
    again = environment.reset(initial_state=0, images=False)
    assert_array_equal(again.state, first.state)
    environment.step(REST, images=False)


@pytest.mark.parametrize("state", [-1, 50])
def test_wrong_initial_states_are_refused(environment, state):
    with pytest.raises(ValueError, match=f"has initial states 0 to 49, got {state}"):
        environment.reset(initial_state=state)


def test_wrong_options_are_refused(libero):
    task = find_task("libero_goal", STOVE)
    with pytest.raises(ValueError, match="Did you mean 'agentview'"):
        make_environment(task, cameras=["agentvew"])
    with pytest.raises(ValueError, match="image_size must be at least 1"):
        make_environment(task, image_size=0)


def make_runner():
    """Run five steps of an episode; environments are kept from episode to episode."""
    kept = {}

    def run(episode):
        if episode.task not in kept:
            kept[episode.task] = make_environment(episode.task)
        environment = kept[episode.task]
        environment.reset(seed=episode.seed, initial_state=episode.initial_state, images=False)
        for action in random_actions(5):
            step = environment.step(action, images=False)
        return step.observation.state

    return run


@pytest.mark.slow
def test_episodes_are_the_same_in_workers_and_here(libero):
    task = find_task("libero_goal", STOVE)
    episodes = [
        EpisodeJob(task, initial_state=0),
        EpisodeJob(task, seed=1),
        EpisodeJob(task, seed=2),
    ]
    here = run_episodes(make_runner, episodes, workers=0)
    there = run_episodes(make_runner, episodes[::-1], workers=1)[::-1]
    for one, other in zip(here, there, strict=True):
        assert one.result is not None
        assert other.result is not None
        assert_array_equal(one.result, other.result)
