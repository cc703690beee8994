from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from prism_motor.manipulation.domain import MANIPULATION
from prism_motor.manipulation.environment import Observation
from prism_motor.manipulation.rollout import (
    PERTURBATIONS,
    Disturber,
    Perturbation,
    find_perturbation,
    orientation_error,
    position_error,
    run_episode,
    smoothness,
)
from prism_motor.manipulation.suites.libero.environment import LiberoEnvironment
from prism_motor.manipulation.tasks import find_task, make_environment, make_expert
from prism_motor.statistics import wilson


def seen(value=128, state=0.0):
    images = {"corner": np.full((32, 32, 3), value, dtype=np.uint8)}
    return Observation(np.full(500, state, np.float32), np.ones(3, np.float32), images)


def test_the_conditions_of_the_paper():
    assert PERTURBATIONS["none"] == Perturbation()
    assert PERTURBATIONS["delay"] == Perturbation(delay=1)
    assert PERTURBATIONS["proprioception"] == Perturbation(state_noise=0.01)
    assert PERTURBATIONS["image"] == Perturbation(image_noise=0.05)
    assert PERTURBATIONS["combined"] == Perturbation(1, 0.01, 0.03)
    with pytest.raises(ValueError, match=r"Unknown condition 'delays'.*Did you mean 'delay'"):
        find_perturbation("delays")


def test_nothing_changes_without_a_perturbation():
    disturber = Disturber(Perturbation(), 1)
    observation = seen()
    result = disturber.observe(observation)
    np.testing.assert_array_equal(result.state, observation.state)
    assert result.images["corner"] is observation.images["corner"]
    np.testing.assert_array_equal(disturber.execute(np.ones(4), np.zeros(4)), np.ones(4))


def test_a_delay_shifts_actions_and_begins_with_what_changes_nothing():
    for holding in (0.0, 7.0):
        disturber = Disturber(Perturbation(delay=2), 1)
        executed = [
            disturber.execute(np.full(2, value, np.float32), np.full(2, holding))
            for value in (1.0, 2.0, 3.0, 4.0)
        ]
        assert [action[0] for action in executed] == [holding, holding, 1, 2]
        assert all(action.dtype == np.float32 for action in executed)


def test_noise_is_in_the_unit_of_the_environment():
    plain, degrees = (Disturber(Perturbation(state_noise=0.01), 3, unit) for unit in (1.0, 50.0))
    np.testing.assert_allclose(
        degrees.observe(seen()).state, 50 * plain.observe(seen()).state, rtol=1e-5
    )


def test_noise_has_the_asked_deviation_and_leaves_objects_alone():
    disturber = Disturber(Perturbation(state_noise=0.01, image_noise=0.05), 3)
    results = [disturber.observe(seen()) for _ in range(40)]
    states = np.stack([result.state for result in results])
    assert states.std() == pytest.approx(0.01, rel=0.03)
    assert states.mean() == pytest.approx(0, abs=3e-4)
    images = np.stack([result.images["corner"] for result in results]) / 255
    assert images.std() == pytest.approx(0.05, rel=0.03)
    assert images.mean() == pytest.approx(128 / 255, abs=1e-3)
    assert states.dtype == np.float32
    np.testing.assert_array_equal(results[0].objects, np.ones(3))


def test_noisy_images_stay_images():
    disturber = Disturber(Perturbation(image_noise=0.5), 3)
    for value in (0, 255):
        image = disturber.observe(seen(value)).images["corner"]
        assert image.dtype == np.uint8
        assert (image == value).mean() > 0.4  # clipped, not wrapped around


def test_the_seed_decides_and_images_do_not_change_the_noise_of_the_state():
    both = Perturbation(state_noise=0.01, image_noise=0.05)
    one = Disturber(both, 5)
    other = Disturber(both, 5)
    blind = Observation(seen().state, seen().objects)
    for _ in range(3):
        first, second = one.observe(seen()), other.observe(blind)
    np.testing.assert_array_equal(first.state, second.state)
    assert (
        Disturber(both, 6).observe(seen()).state != Disturber(both, 5).observe(seen()).state
    ).any()


def quaternion(rotation):
    return np.roll(rotation.as_quat(), 1)


def test_orientation_error_is_the_angle_between_two_rotations():
    generator = np.random.default_rng(0)
    one, other = (Rotation.random(20, random_state=generator) for _ in range(2))
    expected = (one * other.inv()).magnitude()
    found = [
        orientation_error(quaternion(a), quaternion(b)) for a, b in zip(one, other, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_quaternion_and_its_negative_are_the_same_rotation():
    turn = quaternion(Rotation.from_rotvec([0.1, 0.2, 0.3]))
    assert orientation_error(turn, -turn) == pytest.approx(0, abs=1e-12)


def test_tiny_angles_are_exact():
    tiny = quaternion(Rotation.from_rotvec([1e-9, 0, 0]))
    assert orientation_error(tiny, np.array([1.0, 0, 0, 0])) == pytest.approx(1e-9, rel=1e-6)


def test_position_error_is_euclidean():
    assert position_error(np.array([1.0, 2, 3]), np.array([1.0, 5, 7])) == 5


def test_libero_adds_the_action_to_the_pose_before_the_step():
    start = Rotation.from_euler("xyz", [0.4, -0.2, 1.0])
    before = SimpleNamespace(position=np.array([0.1, 0.2, 0.3]), quaternion=quaternion(start))
    action = np.array([0.5, -2.0, 0.0, 0.2, 0.1, -0.4, 1.0])
    position, turned = LiberoEnvironment.commanded_pose(None, before, action)
    np.testing.assert_allclose(position, [0.125, 0.15, 0.3])
    expected = Rotation.from_rotvec([0.1, 0.05, -0.2]) * start
    assert orientation_error(turned, quaternion(expected)) == pytest.approx(0, abs=1e-12)
    _, still = LiberoEnvironment.commanded_pose(None, before, np.zeros(7))
    np.testing.assert_allclose(still, before.quaternion)


@pytest.fixture(scope="module")
def environment():
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    made = make_environment(find_task("metaworld", "reach-v3"), cameras=())
    yield made
    made.close()


class Scripted:
    """An expert as a policy."""

    def __init__(self, environment):
        self.expert = make_expert(environment)
        self.actions = []

    def reset(self, seed):
        self.seed = seed

    def wants_images(self):
        return False

    def act(self, observation):
        self.actions.append(self.expert.act())
        return self.actions[-1]


class Still(Scripted):
    def act(self, observation):
        return np.zeros(4)


class Halving:
    def __init__(self):
        self.seeds, self.speeds = [], []

    def reset(self, seed):
        self.seeds.append(seed)

    def correct(self, action, physics):
        self.speeds.append(np.linalg.norm(physics.velocity[:3]))
        return 0.5 * action


def test_smoothness_is_the_mean_square_of_differences():
    actions = np.random.default_rng(0).normal(size=(7, 4))
    squares = [(actions[t, i] - actions[t - 1, i]) ** 2 for t in range(1, 7) for i in range(4)]
    assert smoothness(actions) == pytest.approx(sum(squares) / len(squares))
    assert smoothness(actions[:1]) == 0


def test_an_episode_ends_with_success_and_is_measured(environment):
    actor = Scripted(environment)
    outcome, trace = run_episode(environment, actor, initial_state=2, seed=11)
    assert outcome.success
    assert outcome.steps == len(actor.actions) == len(trace)
    assert outcome.smoothness == pytest.approx(smoothness(np.stack(actor.actions)))
    assert actor.seed == 11
    assert 0 < outcome.position_error < 0.1
    assert 0 <= outcome.orientation_error < 0.2
    again, _ = run_episode(environment, Scripted(environment), initial_state=2, seed=11)
    assert again == outcome


def test_errors_are_between_the_commanded_and_the_reached_pose(environment):
    environment.reset(initial_state=2, images=False)
    expert, distances = make_expert(environment), []
    while True:
        step = environment.step(expert.act(), images=False)
        distances.append(
            np.linalg.norm(
                environment.physics().position - environment.commanded_pose(None, None)[0]
            )
        )
        if step.success:
            break
    outcome, _ = run_episode(environment, Scripted(environment), initial_state=2)
    assert outcome.position_error == pytest.approx(np.mean(distances))


def test_going_on_after_success_counts_in_the_trace_alone(environment):
    plain, _ = run_episode(environment, Scripted(environment), initial_state=2)
    longer, trace = run_episode(environment, Scripted(environment), initial_state=2, linger=5)
    assert longer == plain
    assert len(trace) == plain.steps + 5


def test_a_policy_that_does_nothing_fails_at_the_horizon(environment):
    outcome, _ = run_episode(environment, Still(environment), initial_state=0)
    assert not outcome.success
    assert outcome.steps == environment.task.horizon
    assert outcome.smoothness == 0


def test_delay_and_corrector_change_what_is_executed(environment):
    corrector = Halving()
    actor = Scripted(environment)
    _, trace = run_episode(
        environment, actor, initial_state=2, seed=4,
        perturbation=PERTURBATIONS["delay"], corrector=corrector,
    )  # fmt: skip
    assert corrector.seeds == [4]
    assert len(corrector.speeds) == len(trace)
    np.testing.assert_allclose(trace.actions[0], 0)
    np.testing.assert_allclose(trace.actions[1:4], 0.5 * np.stack(actor.actions[:3]), rtol=1e-6)


def test_a_video_has_one_image_per_step_and_one_more():
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    environment = make_environment(find_task("metaworld", "reach-v3"), image_size=32)
    pictures = []
    try:
        outcome, _ = run_episode(
            environment, Scripted(environment), initial_state=2, on_frame=pictures.append
        )
    finally:
        environment.close()
    assert len(pictures) == outcome.steps + 1
    assert (pictures[0] != pictures[-1]).any()


def test_tables_show_successful_episodes_by_themselves(environment):
    good, _ = run_episode(environment, Scripted(environment), initial_state=2)
    bad, _ = run_episode(environment, Still(environment), initial_state=2)
    text = MANIPULATION.evaluation_table({"none": [good, good, bad], "delay": [bad]})
    rows = {line.split("  ")[0]: line for line in text.splitlines()}
    low, high = wilson(2, 3)
    assert f"66.7 [{100 * low:.1f}, {100 * high:.1f}]" in rows["success, %"]
    mean = (2 * good.smoothness + bad.smoothness) / 3
    assert f" {mean:.4f} ± " in rows["smoothness (all)"]
    assert f" {good.smoothness:.4f} ± " in rows["smoothness (successful)"]
    assert rows["smoothness (successful)"].endswith("none")
