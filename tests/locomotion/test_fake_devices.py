"""Every reward term and observation, on torch's own fake tensors: none leaves a tensor behind.

The pretended device of :mod:`tests.devices` computes values as well and counts waits; this is
torch's own rule of what may be mixed, asked term by term.
"""

import copy

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from prism_motor.locomotion import rewards
from prism_motor.locomotion.env import make_env
from prism_motor.locomotion.rewards import TERMS
from prism_motor.locomotion.tasks import TASKS
from tests.devices import AWAY

PRESETS = ("paper", "laptop", "quadruped")
ENVS = 4


def move(value, done):
    """Return a copy of a task whose tensors are fakes on a device that is not there."""
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=AWAY)
    if isinstance(value, (list, tuple)):
        return type(value)(move(one, done) for one in value)
    if isinstance(value, dict):
        return {name: move(one, done) for name, one in value.items()}
    if type(value).__module__.startswith("prism_motor.locomotion") and hasattr(value, "__dict__"):
        moved = done[id(value)] = copy.copy(value)
        for name, one in vars(value).items():
            object.__setattr__(moved, name, move(one, done))  # some are frozen
        return moved
    return value


@pytest.fixture(autouse=True)
def _constants():
    """Constants that terms keep per device are fakes here, and nowhere else."""
    kept = (rewards._speed_pay, rewards._leg_masks)
    for one in kept:
        one.cache_clear()  # other tests keep some on a device of the same name
    yield
    for one in kept:
        one.cache_clear()


@pytest.fixture(params=PRESETS)
def env(request):
    env = make_env(TASKS[request.param], ENVS)
    env.step(torch.zeros(ENVS, env.num_actions))
    with FakeTensorMode(shape_env=ShapeEnv()):
        yield move(env, {})


def test_rewards_are_where_the_task_is(env):
    for name, term in env.rewards.terms.items():
        found = term(env.make_step())
        assert (found.device, found.shape) == (AWAY, (ENVS,)), name
    assert env.rewards(env.make_step()).device == AWAY
    begun = torch.zeros(1, dtype=torch.long, device=AWAY)
    logged = env.rewards.reset(begun, env.last_step.sole_height[:1])
    assert {value.device for value in logged.values()} == {AWAY}


def test_observations_are_where_the_task_is(env):
    for block in env.blocks:
        assert block.source(env).device == AWAY, block.name
    actor, critic = env.frame.read(env)
    assert {actor.device, critic.device, env.noise.device} == {AWAY}


def test_ends_of_episodes_are_where_the_task_is(env):
    assert env.has_fallen().device == AWAY


def test_all_terms_are_asked_about():
    asked = {name for preset in PRESETS for name in TASKS[preset].rewards.weights}
    assert asked >= {name for name, spec in TERMS.items() if "prism_motor" in spec.make.__module__}


def test_a_term_that_keeps_a_tensor_on_the_cpu_is_refused(env):
    weights = torch.ones(ENVS)
    with pytest.raises(RuntimeError, match="found two different devices"):
        env.last_step.state.velocity[:, 0] * weights
