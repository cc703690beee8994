from dataclasses import replace

import numpy as np
import pytest
import torch

from prism_motor.locomotion.conditions import CONDITIONS, find_condition
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.task import RandomisationConfig
from prism_motor.locomotion.tasks import TASKS


def build(condition, num_envs=4):
    return VelocityEnv(find_condition(condition).apply(TASKS["g1"]), num_envs, seed=1)


def masses(env):
    models = env.engine._models
    return np.stack([np.concatenate([m.body_mass, m.body_inertia.ravel()]) for m in models])


@pytest.mark.parametrize(
    ("condition", "friction", "mass"),
    [("nominal", 0.825, 1.0), ("low-friction", 0.2, 1.0), ("payload", 0.825, 1.15)],
)
def test_conditions_fix_friction_and_mass(condition, friction, mass):
    env = build(condition)
    assert env.friction.tolist() == pytest.approx([friction] * 4)
    soles = [i for i in range(env.engine.model.ngeom) if "_sole_" in env.engine.model.geom(i).name]
    for model in env.engine._models:
        np.testing.assert_allclose(model.geom_friction[soles, 0], friction)
    nominal = build("nominal").engine.model
    expected = mass * np.concatenate([nominal.body_mass, nominal.body_inertia.ravel()])
    np.testing.assert_allclose(masses(env), np.tile(expected, (4, 1)), rtol=1e-12)


def test_without_randomisation_actions_and_observations_are_exact():
    env = build("nominal")
    actions = torch.randn(4, 12)
    env.step(actions)
    assert torch.equal(env.actions[0], actions)
    frame = env.actor_history.values[:, -1]
    torch.testing.assert_close(frame[:, 5:17], env.state.q - env.default_pose)
    torch.testing.assert_close(frame[:, 44:47], env.state.euler)


def test_pushes_come_as_in_training_and_alone():
    pushed, calm = build("pushes"), build("nominal")
    for env in (pushed, calm):
        env.total_steps = 399
        env.step(torch.zeros(4, 12))
    assert (pushed.push.abs().sum(-1) > 0).all()
    assert calm.push.abs().sum() == 0
    np.testing.assert_array_equal(masses(pushed), masses(calm))
    assert pushed.friction.tolist() == calm.friction.tolist()
    without = replace(TASKS["g1"], randomisation=RandomisationConfig())
    with pytest.raises(ValueError, match=r"trained without pushes"):
        find_condition("pushes").apply(without)


def test_the_training_condition_is_the_training_task():
    assert find_condition("training").apply(TASKS["g1"]) == TASKS["g1"]
    env = build("training", 32)
    assert env.friction.unique().numel() == 32


def test_commands_and_initial_states_stay_random_in_every_condition():
    for condition in CONDITIONS:
        env = build(condition, 32)
        assert env.commands.heading.unique().numel() == 32
        assert len(np.unique(env.engine.qpos[:, 7])) == 32


def test_unknown_conditions_name_the_known_ones():
    with pytest.raises(ValueError, match=r"nominal.*Did you mean 'payload'"):
        find_condition("pay-load")
