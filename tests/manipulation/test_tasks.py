"""The table of suites, and a suite of a user's own from demonstrations to an evaluation."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor.manipulation.environment import NoExpertError
from prism_motor.manipulation.rollout import run_episode
from prism_motor.manipulation.tasks import (
    SUITES,
    Suite,
    find_suite,
    find_task,
    list_tasks,
    make_environment,
    make_expert,
    register_suite,
)

EXTEND = Path(__file__).parents[2] / "examples" / "extend"


@pytest.fixture
def my_suite(monkeypatch):
    """The example module, imported as a plugin is; the table is as before afterwards."""
    monkeypatch.syspath_prepend(str(EXTEND))
    sys.modules.pop("my_suite", None)
    yield importlib.import_module("my_suite")
    SUITES.remove("my_suite")


class Straight:
    """The expert as a policy."""

    def __init__(self, environment):
        self.expert = make_expert(environment)

    def reset(self, seed):
        pass

    def wants_images(self):
        return False

    def act(self, observation):
        return self.expert.act()


def test_every_suite_of_prism_is_found_under_its_own_name():
    for name in SUITES.own:
        assert find_suite(name).name == name


def test_wrong_names_are_refused_with_the_nearest_one():
    with pytest.raises(InputError, match=r"Unknown suite 'metaword'.*Did you mean 'metaworld'"):
        list_tasks("metaword")


def test_the_example_is_short_and_documented_as_it_is():
    program = (EXTEND / "my_suite.py").read_text()
    assert len(program.splitlines()) <= 40
    assert program in (EXTEND.parents[1] / "docs" / "extend.md").read_text()


def test_a_registered_suite_is_one_like_any_other(my_suite):
    task = find_task("my_suite", "reach")
    assert find_task("my_suite", 0) == task
    environment = make_environment(task)
    outcome, trace = run_episode(environment, Straight(environment), initial_state=3)
    assert outcome.success
    assert outcome.position_error == pytest.approx(0, abs=1e-6)
    assert outcome.orientation_error == 0
    assert len(trace) == outcome.steps


def test_episodes_follow_from_their_seed_and_never_meet_initial_states(my_suite):
    environment = make_environment(find_task("my_suite", 0))

    def start(**options):
        seen = environment.reset(**options)
        return np.concatenate([seen.state, seen.objects])

    np.testing.assert_array_equal(start(seed=4), start(seed=4))
    np.testing.assert_array_equal(start(initial_state=4), start(initial_state=4))
    assert np.abs(start(seed=4) - start(initial_state=4)).max() > 1e-3
    assert np.abs(start(seed=4) - start(seed=5)).max() > 1e-3
    with pytest.raises(InputError, match="my_suite/0 has initial states 0 to 49, got 50"):
        environment.reset(initial_state=50)


def test_actions_are_checked_clipped_and_counted(my_suite):
    environment = make_environment(find_task("my_suite", 0))
    start = environment.reset(seed=1).state
    moved = environment.step(np.array([9.0, 0.0])).observation.state - start
    np.testing.assert_allclose(moved, [my_suite.STEP, 0], atol=1e-6)
    with pytest.raises(InputError, match="has 2 values, got shape"):
        environment.step(np.zeros(3))
    with pytest.raises(InputError, match="must be finite"):
        environment.step(np.array([np.nan, 0.0]))
    environment.reset(seed=1)
    away = -np.sign(environment.goal - environment.point)
    steps = [environment.step(away) for _ in range(61)]
    assert [step.timeout for step in steps[58:]] == [False, True, True]
    with pytest.raises(InputError, match="no camera for videos"):
        environment.frame()


def test_options_that_a_suite_lacks_are_refused(my_suite):
    task = find_task("my_suite", 0)
    with pytest.raises(InputError, match="my_suite has no option stiffness, got 50"):
        make_environment(task, stiffness=50.0)
    make_environment(task, stiffness=None)
    with pytest.raises(InputError, match="metaworld has no option stiffness"):
        find_suite("metaworld").check_options(stiffness=50.0)
    assert find_suite("libero_goal").check_options(stiffness=50.0) == {"stiffness": 50.0}
    with pytest.raises(InputError, match=r"has no option colour, got red.* Its options: stiffness"):
        find_suite("libero_goal").check_options(colour="red")


def test_names_of_prism_are_taken_and_suites_without_experts_say_so(my_suite):
    with pytest.raises(InputError, match="built-in suite called 'metaworld'"):
        register_suite(Suite("metaworld", list, my_suite.PointOnTable))
    without = Suite("my_suite", lambda: [my_suite.REACH], my_suite.PointOnTable)
    with pytest.raises(InputError, match="'my_suite' is already registered"):
        register_suite(without)
    SUITES.remove("my_suite")
    register_suite(without)
    with pytest.raises(NoExpertError, match="my_suite has no scripted experts"):
        make_expert(make_environment(find_task("my_suite", 0)))


def train(tmp_path, updates, **overrides):
    """Record demonstrations of the suite, train on object poses and return the run folder."""
    from prism_motor.cli import main
    from prism_motor.manipulation.domain import MANIPULATION
    from prism_motor.train import session

    demos = tmp_path / "demos"
    words = ["--suite", "my_suite", "--task", "reach", "--episodes", "20", "--image-size", "0"]
    main(["record", *words, "--out", str(demos)])
    settings = {
        "task.suite": "my_suite",
        "task.name": "reach",
        "demos": str(demos),
        "updates": updates,
        "checkpoint_every": updates,
        **overrides,
    }
    config = MANIPULATION.make_config("state", "prism", overrides=settings)
    session.train(*session.start(config, tmp_path / "run"))
    return tmp_path / "run"


def evaluate(run, episodes, workers=0):
    from prism_motor.manipulation.config import HandlingEvaluation
    from prism_motor.train.evaluations import Evaluations

    evaluations = Evaluations(run, HandlingEvaluation(episodes=episodes, workers=workers))
    try:
        return evaluations.measure(
            "none", 1, evaluations.missing("none", 1, again=True), again=True
        )
    finally:
        evaluations.close()


def test_a_registered_suite_is_recorded_learned_and_evaluated(my_suite, tmp_path, capsys):
    pytest.importorskip("lerobot", reason="LeRobot is not installed")
    small = {"network.widths": [8, 16], "batch": 8, "network.inference_steps": 2}
    run = train(tmp_path, 3, **small)
    assert "20 demonstrations of my_suite reach, 'reach the goal'" in capsys.readouterr().out
    assert len(evaluate(run, 2)) == 2


@pytest.mark.slow
def test_processes_know_a_registered_suite_too(my_suite, tmp_path):
    pytest.importorskip("lerobot", reason="LeRobot is not installed")
    run = train(tmp_path, 100, **{"network.widths": [16, 32]})
    here = evaluate(run, 2)
    assert evaluate(run, 2, workers=1) == here
