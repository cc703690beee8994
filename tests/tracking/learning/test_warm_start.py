"""The warm start: what it changes, whether it learns, exact resume."""

from contextlib import nullcontext

import pytest
import torch

from prism_motor.tracking.learning.learner import TrackingLearner
from prism_motor.tracking.learning.warm_start import WarmStart
from prism_motor.tracking.presets import make_config
from tests.tracking.robots import make_env, replace, short_references

SMALL = {"warm_start.steps": 8, "warm_start.spreading_steps": 30, "warm_start.cloning_steps": 30}


def make(envs=8, frames=30, seed=1, **changes):
    """Return a warm start, with its learner."""
    torch.manual_seed(seed)
    config = make_config("tiny", "prism", seed=seed, overrides={**SMALL, **changes})
    references = short_references(frames, names=("squat", "wave"))
    env = make_env(envs=envs, references=references, starts=config.task.starts)
    config = replace(config, task=env.task, envs=envs)
    learner = TrackingLearner(config, env.layout, seed=seed)
    experts = references.experts(env.layout, torch.tensor(env.task.units), config.latents.window)
    return WarmStart(config, learner, env, references, experts), learner


def update(warm, rows=None):
    return warm.update(lambda name: nullcontext(), lambda **row: rows is None or rows.append(row))


def copy(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def changed(before, module):
    return {name for name, value in module.state_dict().items() if not value.equal(before[name])}


def test_preparing_spreads_the_backward_map_and_imitates_the_clips():
    warm, learner = make()
    seen, wanted = warm._goals, warm._aims
    policy = learner.policy

    def spread():
        codes = policy.encode(seen) / codes_norm
        return (codes @ codes.T).square().mean().item()

    codes_norm = learner.settings.networks.latent**0.5
    before = spread()
    warm.prepare()
    assert spread() < before
    with torch.no_grad():
        missed = (policy(seen, warm._prompts()) - wanted).square().sum(dim=1).mean()
        nothing = wanted.square().sum(dim=1).mean()
    assert missed < nothing
    # Statistics are those of the clips and of robots that fall, wherever something varies.
    normal = policy.normaliser(seen)[:, policy.layout.columns["state"]]
    assert normal.mean(dim=0).abs().max() < 1.0
    assert 0.5 < normal.std(dim=0).max() < 2.0
    # Whoever follows a clip has its next frame before it, whoever holds a pose has that.
    total = warm._total
    assert torch.equal(warm._next[total:], torch.arange(total, 2 * total))
    assert warm._next[:3].tolist() == [1, 2, 3]
    assert warm._is_last.nonzero()[:, 0].tolist() == [29, 59]


def test_ppo_changes_the_actor_and_nothing_else():
    warm, learner = make()
    warm.prepare()
    before = copy(learner.policy)
    others = {name: copy(module) for name, module in learner.models().items() if name != "policy"}
    rows = []
    update(warm, rows)
    names = changed(before, learner.policy)
    assert names
    moving = {"normaliser.mean", "normaliser.variance", "normaliser.batches"}
    assert moving <= names
    assert all(name.startswith("actor.") for name in names - moving)
    assert names >= {
        f"actor.{n}" for n, p in learner.policy.actor.named_parameters() if p.dim() > 1
    }
    for name, module in learner.models().items():
        if name != "policy":
            assert not changed(others[name], module), name
    assert len(rows) == 8
    assert {len(row["ends"]) for row in rows} == {8}
    latents = torch.stack([row["latent"] for row in rows])
    size = learner.settings.networks.latent
    torch.testing.assert_close(latents.norm(dim=-1), torch.full((8, 8), size**0.5))


def test_a_saved_state_continues_to_the_bit():
    def state(warm, learner):
        tensors, plain = warm.state()
        return {name: value.detach().clone() for name, value in tensors.items()}, plain

    warm, learner = make()
    update(warm)
    saved, policy, env = state(warm, learner), copy(learner.policy), warm._env.state_dict()
    random, draws = torch.get_rng_state(), learner.generator.get_state()
    first = update(warm)
    other, again = make(seed=2)
    again.policy.load_state_dict(policy)
    other._env.load_state_dict(env)
    other.restore(*saved)
    torch.set_rng_state(random)
    again.generator.set_state(draws)
    assert update(other) == first
    assert not changed(copy(learner.policy), again.policy)
    for name, value in warm.state()[0].items():
        assert torch.equal(value, other.state()[0][name]), name


def test_clips_of_which_more_is_missed_are_begun_more_often():
    warm, _ = make()
    env = warm._env
    for _ in range(200):
        warm._prioritise(torch.tensor([30.0, 10.0]).double(), torch.tensor([10.0, 10.0]).double())
    # Half of all episodes begin in any clip, the others three times as often in the first.
    assert env.priorities.tolist() == pytest.approx([0.25 + 0.375, 0.25 + 0.125], rel=1e-3)
    warm._prioritise(torch.zeros(2).double(), torch.zeros(2).double())  # nothing was seen
    assert env.priorities.tolist() == pytest.approx([0.625, 0.375], rel=1e-3)


def test_exploration_never_falls_below_its_least():
    bounds = {"warm_start.exploration": 0.1, "warm_start.least_exploration": 0.04}
    warm, _ = make(**bounds)
    units = torch.tensor(warm._env.task.units)
    std = warm._actor.std
    assert (std * units).tolist() == pytest.approx([0.1] * len(units), rel=1e-5)
    with torch.no_grad():
        std[:3] = 0.001
    update(warm)
    assert (std[:3] * units[:3]).tolist() == pytest.approx([0.04] * 3, rel=1e-5)
    assert (std[3:] * units[3:]).min() > 0.05  # what is above it, is left alone
