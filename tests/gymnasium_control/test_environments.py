"""Environments: what can be trained on, and a state from which they go on exactly."""

import json

import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor.gymnasium_control.environments import env_facts, make_env
from prism_motor.gymnasium_control.watched_env import WatchedEnv
from prism_motor.gymnasium_control.zoo import ENVIRONMENTS
from prism_motor.runs.layout import RunError
from prism_motor.train.finite import NonFiniteTrainingError


def watched(name, number=0, single=False):
    return WatchedEnv(make_env(name), number, single)


def roll(env, random, steps):
    """Step with random actions, beginning anew where an episode ends; return all that is shown."""
    shown = []
    for _ in range(steps):
        action = random.uniform(env.action_space.low, env.action_space.high).astype(np.float32)
        observation, reward, terminated, truncated, info = env.step(action)
        shown.append([*observation, reward, terminated, truncated, info["x_position"]])
        if terminated or truncated:
            observation, _ = env.reset()
            shown.append([*observation, 0, 0, 0, 0])
    return np.array(shown)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_saved_state_goes_on_exactly(name):
    one, two = watched(name), watched(name)
    one.reset(seed=1)
    two.reset(seed=99)
    roll(one, np.random.default_rng(0), 7)  # within an episode, in contact with the floor
    tensors, plain = one.state()
    two.restore(tensors, json.loads(json.dumps(plain)))
    first, second = (roll(env, np.random.default_rng(5), 60) for env in (one, two))
    np.testing.assert_array_equal(first, second)


def test_the_time_limit_is_part_of_the_state():
    one, two = watched("HalfCheetah-v5"), watched("HalfCheetah-v5")
    for env in (one, two):
        env.reset(seed=1)
    roll(one, np.random.default_rng(0), 990)
    two.restore(*one.state())
    ended = roll(two, np.random.default_rng(0), 10)[:, -2].nonzero()[0]
    assert ended.tolist() == [9]


def test_a_state_of_another_model_is_refused():
    hopper, ant = watched("Hopper-v5"), watched("Ant-v5")
    for env in (hopper, ant):
        env.reset(seed=1)
    with pytest.raises(RunError, match=r"another version of MuJoCo.*provenance"):
        ant.restore(*hopper.state())


def test_what_diverges_or_is_not_finite_is_named():
    env = watched("Hopper-v5", number=3)
    env.reset(seed=1)
    with pytest.raises(NonFiniteTrainingError, match="action of environment 3"):
        env.step(np.array([0, np.nan, 0], np.float32))
    env.unwrapped.data.qvel[1] = np.nan
    with pytest.raises(NonFiniteTrainingError, match=r"physics of environment 3 .*qvel"):
        env.step(np.zeros(3, np.float32))
    env.reset()
    env.step(np.zeros(3, np.float32))  # which is fine again
    with pytest.raises(NonFiniteTrainingError, match=r"environment 3, entry 1, is inf"):
        env._checked(np.array([0.0, np.inf]))


def test_single_precision_rounds_what_is_shown():
    double, single = watched("Hopper-v5"), watched("Hopper-v5", single=True)
    seen = [env.reset(seed=4)[0] for env in (double, single)]
    assert [one.dtype for one in seen] == [np.float64, np.float32]
    np.testing.assert_array_equal(seen[0].astype(np.float32), seen[1])
    assert single.observation_space.dtype == np.float32


def test_sizes():
    facts = env_facts("Ant-v5")
    assert (facts.observations, facts.actions, facts.substeps) == (105, 8, 5)
    assert env_facts("Humanoid-v5").observations == 348


def test_other_environments_are_refused_with_advice():
    with pytest.raises(InputError, match=r"Unknown environment 'Hoper-v5'.*Hopper-v5"):
        make_env("Hoper-v5")
    with pytest.raises(InputError, match=r"Pendulum-v1 is not simulated by MuJoCo.*Hopper-v5"):
        make_env("Pendulum-v1")
