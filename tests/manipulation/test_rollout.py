import numpy as np
import pytest

from prism_motor.manipulation.rollout import PERTURBATIONS, run_episode, smoothness
from prism_motor.manipulation.summary import summarise, summary_table
from prism_motor.manipulation.tasks import find_task, make_environment, make_expert
from prism_motor.statistics import wilson

pytest.importorskip("metaworld", reason="Meta-World is not installed")


@pytest.fixture(scope="module")
def environment():
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
        distances.append(np.linalg.norm(environment.physics().position - environment.target()[0]))
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


def test_a_film_has_a_picture_a_step_and_one_more():
    environment = make_environment(find_task("metaworld", "reach-v3"), image_size=32)
    pictures = []
    try:
        outcome, _ = run_episode(
            environment, Scripted(environment), initial_state=2, film=pictures.append
        )
    finally:
        environment.close()
    assert len(pictures) == outcome.steps + 1
    assert (pictures[0] != pictures[-1]).any()


def test_summaries_tell_all_episodes_from_successful_ones(environment):
    good, _ = run_episode(environment, Scripted(environment), initial_state=2)
    bad, _ = run_episode(environment, Still(environment), initial_state=2)
    summary = summarise([good, good, bad])
    assert (summary.successes, summary.episodes) == (2, 3)
    assert summary.interval == wilson(2, 3)
    assert summary.means["steps"] == pytest.approx((2 * good.steps + bad.steps) / 3)
    assert summary.means_of_successes is not None
    assert summary.means_of_successes["smoothness"] == pytest.approx(good.smoothness)
    assert summarise([bad]).means_of_successes is None
    text = summary_table({"none": summary, "delay": summarise([bad])})
    assert "66.7 [" in text
    assert "none" in text.splitlines()[-1]
    with pytest.raises(ValueError, match="no episodes"):
        summarise([])
