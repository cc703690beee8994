"""Experts in LIBERO itself: they succeed, repeat themselves, and say what they cannot do."""

import numpy as np
import pytest

from prism_motor.manipulation.demonstrations.recording import record_demonstration
from prism_motor.manipulation.environment import NoExpertError
from prism_motor.manipulation.suites.libero.experts.expert import ProgramStep, derive_program
from prism_motor.manipulation.suites.libero.experts.measure import try_once
from prism_motor.manipulation.tasks import find_task, make_environment, make_expert


def test_putting_is_one_step():
    goals = [("on", "akita_black_bowl_1", "plate_1")]

    assert derive_program(goals) == (ProgramStep("put", "akita_black_bowl_1", "plate_1"),)


def test_what_must_be_closed_at_the_end_is_closed_last():
    goals = [("close", "cabinet_drawer"), ("in", "bowl", "cabinet_drawer")]

    assert derive_program(goals) == (
        ProgramStep("put", "bowl", "cabinet_drawer"),
        ProgramStep("close", "cabinet_drawer"),
    )


def test_a_closed_drawer_is_opened_before_something_goes_in():
    program = derive_program([("in", "bowl", "drawer")], closed=["drawer"])

    assert program == (ProgramStep("open ajar", "drawer"), ProgramStep("put", "bowl", "drawer"))


def test_things_keep_the_order_of_the_goal():
    goals = [("in", "soup", "basket"), ("in", "cheese", "basket"), ("turnon", "stove")]

    assert [step.thing for step in derive_program(goals)] == ["stove", "soup", "cheese"]


def test_an_unknown_predicate_is_named():
    with pytest.raises(NoExpertError, match=r"'turnoff'.*turnon.*close"):
        derive_program([("turnoff", "stove")])


@pytest.fixture
def open_environment(libero):
    environments = []

    def make(suite, task):
        environments.append(make_environment(find_task(suite, task), cameras=()))
        return environments[-1]

    yield make
    for environment in environments:
        environment.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "task"),
    [("libero_object", 1), ("libero_goal", 0), ("libero_goal", 5), ("libero_goal", 7)],
)
def test_an_expert_solves_its_task(open_environment, suite, task):
    environment = open_environment(suite, task)

    success, steps = try_once(environment, make_expert(environment), seed=3)

    assert success
    assert steps < environment.task.horizon


@pytest.mark.slow
def test_a_drawer_is_opened_without_waits_and_in_spite_of_noise(open_environment):
    environment = open_environment("libero_goal", 0)
    options = {"seed": 3, "hold": 0, "images": False}

    clean = record_demonstration(environment, make_expert(environment), **options)
    noisy = record_demonstration(environment, make_expert(environment), **options, noise=0.1)

    assert clean is not None
    moved = np.linalg.norm(np.diff(clean.states[:, :3], axis=0), axis=1)
    gripped = np.abs(np.diff(clean.states[:, 6:], axis=0)).max(axis=1)
    still = (moved < 5e-4) & (gripped < 5e-4)
    longest = max(len(run) for run in "".join("x" if one else " " for one in still).split())
    assert longest <= 8
    assert noisy is not None


def test_the_same_state_gives_the_same_actions(open_environment):
    environment = open_environment("libero_object", 0)
    actions = []
    for _ in range(2):
        expert = make_expert(environment)
        environment.reset(seed=5, images=False)
        expert.reset()
        actions.append([])
        for _ in range(12):
            actions[-1].append(expert.act())
            environment.step(actions[-1][-1], images=False)

    assert np.array_equal(*actions)
    assert np.abs(actions).max() <= 1.0


def test_a_goal_without_a_skill_is_refused(open_environment):
    environment = open_environment("libero_goal", 7)
    environment.reset(seed=0, images=False)
    goals = environment.problem.parsed_problem["goal_state"]
    goals[:] = [["open", "flat_stove_1"]]

    with pytest.raises(NoExpertError, match=r"open a flat_stove.*white_cabinet"):
        make_expert(environment).reset()
