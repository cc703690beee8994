import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prism_motor._checks import InputError
from prism_motor.manipulation.compliance import make_corrector
from prism_motor.manipulation.demonstrations.recording import record_demonstration
from prism_motor.manipulation.environment import Observation
from prism_motor.manipulation.rollout import Disturber, find_perturbation, run_episode
from prism_motor.manipulation.tasks import find_task, list_tasks, make_environment, make_expert
from prism_motor.sim.so101 import FEATURES, HOME
from prism_motor.sim.so101.kinematics import forward
from prism_motor.sim.so101.units import to_radians

SUITES = ("so101", "so101_stiff", "so101_wide", "so101_stiff_wide")


@pytest.fixture(scope="module")
def environment():
    made = make_environment(find_task("so101", "mouse-click-v0"), image_size=32)
    yield made
    made.close()


class Following:
    """The expert as a policy."""

    def __init__(self, environment):
        self.expert, self.started = make_expert(environment), False

    def reset(self, seed):
        self.started = False

    def wants_images(self):
        return False

    def act(self, observation):
        if not self.started:
            self.expert.reset()
            self.started = True
        return self.expert.act()


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_has_the_tasks_of_the_twin(suite):
    tasks = list_tasks(suite)
    assert [task.name for task in tasks] == ["mouse-click-v0", "press-key-v0", "push-cube-v0"]
    assert tasks[0].instruction == "Click the mouse"
    assert {task.horizon for task in tasks} == {300}
    made = make_environment(tasks[0], cameras=())
    assert made.twin.servos.kp == (998.22 if "stiff" in suite else 17.8)
    scene = made.twin.scene
    assert made.twin.placement == (scene.wide if suite.endswith("_wide") else scene.narrow)
    assert made.initial_states == 50


@pytest.mark.parametrize("task", range(3))
def test_experts_solve_fixed_initial_states(task):
    made = make_environment(find_task("so101", task), cameras=())
    for state in (0, 49):
        outcome, trace = run_episode(made, Following(made), initial_state=state)
        assert outcome.success
        assert outcome.steps < 200
        # A soft arm sags, and a command leads: a centimetre or a few, not decimetres.
        assert 0.001 < outcome.position_error < 0.06
        assert trace.largest_force.max() > 0.05


def test_names_units_and_limits_are_lerobots(environment):
    assert environment.state_names == environment.action_names == FEATURES
    assert round(1 / environment.control_seconds) == 30
    assert_allclose(environment.action_low[:2], [-110, -100], atol=0.01)
    assert_allclose(environment.action_high[[0, 5]], [110, 100], atol=0.01)
    assert environment.action_low[5] == 0
    seen = environment.reset(seed=1)
    assert_allclose(seen.state, HOME, atol=2.5)
    assert len(seen.objects) == len(environment.object_names)
    assert {name: image.shape for name, image in seen.images.items()} == {
        "agent": (32, 32, 3),
        "wrist": (32, 32, 3),
    }
    assert environment.reset(seed=1, images=False).images == {}
    assert environment.frame(64).shape == (64, 64, 3)


def test_actions_in_degrees_are_executed_and_not_clipped_to_one(environment):
    environment.reset(seed=1, images=False)
    wanted = (HOME + np.array([20, 0, 0, 0, 0, 0])).astype(np.float32)
    for _ in range(40):
        step = environment.step(wanted, images=False)
    assert step.observation.state[0] == pytest.approx(20, abs=0.5)
    environment.step(np.full(6, 1e4), images=False)
    assert_allclose(environment.twin.targets, environment.action_high, rtol=1e-6)
    with pytest.raises(InputError, match="has 6 values"):
        environment.step(np.zeros(7))


def test_resets_follow_from_the_seed_or_the_initial_state(environment):
    def start(**options):
        return environment.reset(images=False, **options).objects

    assert_array_equal(start(seed=4), start(seed=4))
    assert_array_equal(start(initial_state=4), start(initial_state=4))
    assert np.abs(start(seed=4)[:2] - start(seed=5)[:2]).max() > 1e-4
    for state in range(50):
        place = start(initial_state=state)[:2]
        assert_allclose(place, environment.twin.evaluation_poses[state][:2], rtol=1e-6)
    with pytest.raises(InputError, match="has initial states 0 to 49, got 50"):
        environment.reset(initial_state=50)


def test_a_delayed_command_leaves_the_arm_where_it_is(environment):
    late = find_perturbation("delay")
    _, trace = run_episode(environment, Following(environment), initial_state=1, perturbation=late)
    assert_allclose(trace.actions[0], HOME, atol=1e-4)
    assert np.abs(np.diff(trace.actions, axis=0)).max() < 5


def test_noise_on_the_state_is_half_a_degree(environment):
    disturber = Disturber(find_perturbation("proprioception"), 1, environment.noise_unit)
    still = Observation(np.zeros(20_000, np.float32), np.zeros(1, np.float32))
    assert disturber.observe(still).state.std() == pytest.approx(0.5, rel=0.02)


def test_the_commanded_pose_is_where_targets_lead(environment):
    environment.reset(seed=1, images=False)
    position, turn = environment.commanded_pose(environment.physics(), HOME)
    expected = forward(to_radians(HOME))
    assert_array_equal(position, expected.position)
    assert_array_equal(turn, expected.quaternion)
    # At rest, the tip is below its command by the sag alone.
    reached = environment.physics().position
    assert 0 < position[2] - reached[2] < 0.012


def test_physics_is_consistent(environment):
    environment.reset(seed=1, images=False)
    expert = make_expert(environment)
    for _ in range(12):
        before = environment.physics()
        environment.step(expert.act(), images=False)
    after = environment.physics()
    assert after.jacobian.shape == (6, 5)
    moved = (after.position - before.position) / environment.control_seconds
    assert_allclose(0.5 * (after.velocity + before.velocity)[:3], moved, atol=0.02)
    assert_allclose(np.degrees(after.joint_positions), environment.twin.positions()[:5])


def test_compliance_baselines_are_refused(environment):
    with pytest.raises(InputError, match="so101 are targets of joints"):
        make_corrector("mcc-oracle", environment)


def test_noise_on_executed_actions_spares_the_gripper(environment):
    executed, step = [], environment.step

    class Recording:
        def __getattr__(self, name):
            return getattr(environment, name)

        def step(self, action, **options):
            executed.append(action)
            return step(action, **options)

    shown = record_demonstration(
        Recording(), make_expert(environment), seed=2, hold=4, images=False, noise=0.5
    )
    off = np.stack(executed) - shown.actions
    assert off[:, :5].std() == pytest.approx(0.5, rel=0.1)
    assert np.abs(off[:, 5]).max() == 0


def test_images_are_drawn_larger_and_scaled():
    task = find_task("so101", 0)
    small = make_environment(task, image_size=16, drawn_size=48)
    large = make_environment(task, image_size=48)
    one, other = (made.reset(initial_state=3).images for made in (small, large))
    for made in (small, large):
        made.close()
    for camera in ("agent", "wrist"):
        blocks = other[camera].reshape(16, 3, 16, 3, 3).mean((1, 3))
        assert_allclose(one[camera], blocks, atol=1)


def test_options_that_the_suite_lacks_are_refused():
    task = find_task("so101", 0)
    assert make_environment(task, cameras=(), stiffness=12.0).twin.servos.kp == 12
    with pytest.raises(InputError, match="so101 has no option renderer"):
        make_environment(task, renderer="stock")
    with pytest.raises(InputError, match="Did you mean 'press-key-v0'"):
        find_task("so101", "press-key")
