"""Prompts: optimal on a known linear problem, and bound to frames, goals and rewards."""

import numpy as np
import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.tracking.learning.latents import project
from prism_motor.tracking.observations import Layout, clip_observations
from prism_motor.tracking.policy import TrackingPolicy
from prism_motor.tracking.presets import PRESETS
from prism_motor.tracking.prompts.latents import (
    at_rest,
    combine_codes,
    goal_prompt,
    reward_prompt,
    tracking_prompt,
)
from tests.tracking.frames import frame, random_frames

LAYOUT = Layout(compact=True)


@pytest.fixture
def policy():
    return TrackingPolicy(PRESETS["tiny"].settings.networks, LAYOUT)


def test_a_reward_prompt_ranks_actions_as_the_true_values_do():
    # Six states, three actions, a fixed policy: Q is linear in the successor measure, which F and B
    # represent exactly with one code per state.
    rng = np.random.default_rng(0)
    states, actions, gamma = 6, 3, 0.9
    chance = rng.dirichlet(np.ones(states), size=(states, actions))
    follow = chance.mean(1)
    measure = chance @ np.linalg.inv(np.eye(states) - gamma * follow)
    codes = np.sqrt(states) * np.eye(states)
    forward = measure @ np.linalg.inv(codes)  # F(s, a) . B(x) = M(s, a, x)
    for _ in range(20):
        reward = rng.normal(size=states)
        latent = combine_codes(torch.tensor(codes), torch.tensor(reward), temperature=None)
        value = np.zeros(states)
        for _ in range(2000):
            value = follow @ (reward + gamma * value)
        true = chance @ (reward + gamma * value)
        found = forward @ latent.numpy()
        assert (found.argmax(1) == true.argmax(1)).all()
        # It is the value up to a positive factor.
        assert np.corrcoef(found.ravel(), true.ravel())[0, 1] == pytest.approx(1.0)


def test_a_linear_reward_is_its_own_prompt():
    torch.manual_seed(0)
    codes = torch.linalg.qr(torch.randn(64, 8, dtype=torch.float64)).Q * 8  # mean of B B^T = 1
    wish = torch.randn(8, dtype=torch.float64)
    latent = combine_codes(codes, codes @ wish, temperature=None)
    assert torch.allclose(latent, project(wish), atol=1e-9)


def test_the_weighted_variant_listens_to_the_best_states():
    codes = torch.eye(4) * 2
    rewards = torch.tensor([0.0, 0.5, 0.6, 1.0])
    weights = np.exp(10 * rewards.numpy()) / np.exp(10 * rewards.numpy()).sum() * rewards.numpy()
    expected = 2 * weights / np.linalg.norm(weights)
    found = combine_codes(codes, rewards, 10.0)
    assert np.allclose(found, expected, atol=1e-6)
    assert found[3] > combine_codes(codes, rewards, None)[3]
    with pytest.raises(InputError, match="zero on all given states"):
        combine_codes(codes, torch.zeros(4), 10.0)


def test_tracking_looks_one_frame_ahead(policy):
    rows = clip_observations(random_frames(12), LAYOUT)
    latents = tracking_prompt(policy, rows)
    codes = policy.encode(rows)
    assert torch.allclose(latents, codes[1:], atol=1e-4)
    wide = tracking_prompt(policy, rows, window=3)
    assert torch.allclose(wide[2], project(codes[3:6].mean(0)), atol=1e-4)
    with pytest.raises(InputError, match="two frames"):
        tracking_prompt(policy, rows[:1])


def test_a_goal_is_a_pose_at_rest(policy):
    frames = random_frames(2)
    still = at_rest(frames)
    assert not still.joint_velocities.any()
    assert not still.angular_velocity.any()
    names = LAYOUT.names["privileged"]
    moving = torch.tensor(["velocity" in name for name in names])
    assert moving.sum() == 66
    assert not still.bodies[:, moving].any()
    assert torch.equal(still.bodies[:, ~moving], frames.bodies[:, ~moving])
    moving = policy.encode(clip_observations(frames, LAYOUT))
    goal = goal_prompt(policy, frames)
    assert torch.equal(goal, goal_prompt(policy, still))
    assert not torch.allclose(goal, moving, atol=1e-2)
    assert torch.allclose(goal[:1], goal_prompt(policy, frame(frames, 0)), atol=1e-5)


def test_a_reward_prompt_uses_the_policys_codes(policy):
    rows = clip_observations(random_frames(30), LAYOUT)
    rewards = torch.rand(30)
    expected = combine_codes(policy.encode(rows), rewards, 10.0)
    assert torch.equal(reward_prompt(policy, rows, rewards), expected)
    with pytest.raises(InputError, match="30 states need as many rewards, got 29"):
        reward_prompt(policy, rows, rewards[1:])
