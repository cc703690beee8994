"""The reward of the warm start."""

import numpy as np
import pytest
import torch

from prism_motor.tracking.learning.following_reward import (
    ACTION_CHANGE,
    SLIPPAGE,
    TERMS,
    TrackingReward,
)
from tests.tracking.robots import make_env


@pytest.fixture
def env():
    env = make_env(envs=4)
    env.begin_at(torch.tensor([0, 10, 45, 60]))
    return env


def look(env, terms=None):
    """Return what a step would say about the robots as they are now."""
    from prism_motor.tracking.bodies import read_bodies
    from prism_motor.tracking.env import TrackingStep

    bodies = read_bodies(env.engine)
    terms = torch.zeros(env.envs, 6) if terms is None else terms
    nobody = torch.zeros(env.envs, dtype=torch.bool)
    qpos, qvel = env.engine.qpos.copy(), env.engine.qvel.copy()
    return TrackingStep(terms, env.stands(bodies), nobody, bodies, qpos, qvel)


def test_a_robot_in_its_frame_gets_everything():
    assert sum(term.weight for term in TERMS.values()) == pytest.approx(1.0)


def test_rewards_are_largest_in_the_frame_and_do_not_depend_on_the_place(env):
    reward = TrackingReward(env.references, env.layout)
    frames = torch.tensor([0, 10, 45, 60])
    found, lost = reward(look(env), frames)
    assert (found > 0.99).all()  # clips have smoothed velocities
    assert not lost.any()
    elsewhere = TrackingReward(env.references, env.layout)(look(env), frames.flip(0))[0]
    assert (elsewhere < found).all()
    # Moved and turned about the vertical, with its velocities.
    qpos, qvel = env.engine.qpos.copy(), env.engine.qvel.copy()
    qpos[:, :2] += [3.0, -2.0]
    half = 0.7
    w, x, y, z = qpos[:, 3:7].T.copy()
    turn = np.cos(half), np.sin(half)
    qpos[:, 3:7] = np.stack(
        [turn[0] * w - turn[1] * z, turn[0] * x - turn[1] * y,
         turn[0] * y + turn[1] * x, turn[0] * z + turn[1] * w], axis=1
    )  # fmt: skip
    c, s = np.cos(2 * half), np.sin(2 * half)
    qvel[:, :2] = qvel[:, :2] @ np.array([[c, s], [-s, c]])
    env.engine.set_state(np.arange(4), qpos, qvel)
    np.testing.assert_allclose(reward(look(env), frames)[0], found, atol=1e-6)


def test_every_part_is_as_documented(env):
    reward = TrackingReward(env.references, env.layout)
    frames = torch.tensor([0, 10, 45, 60])
    base = reward(look(env), frames)[0]
    # Height alone: bodies around the root, velocities and joints stay the same.
    env.engine.qpos[:, 2] += 0.05
    height = TERMS["height"]
    expected = height.weight * (1 - np.exp(-height.sharpness * 0.05**2))
    np.testing.assert_allclose(base - reward(look(env), frames)[0], expected, atol=1e-6)
    env.engine.qpos[:, 2] -= 0.05
    # Velocity alone.
    env.engine.qvel[:, 2] += 10.0
    gone = base - reward(look(env), frames)[0]
    np.testing.assert_allclose(gone, TERMS["velocity"].weight, atol=5e-3)
    env.engine.qvel[:, 2] -= 10.0
    terms = torch.zeros(4, 6)
    terms[:, 0], terms[:, 4] = 3.0, 100.0
    changed = reward(look(env, terms), frames)[0] - base
    np.testing.assert_allclose(changed, 3 * ACTION_CHANGE + 5 * SLIPPAGE, atol=1e-6)


def test_a_clip_is_lost_by_height_tilt_or_a_fall(env):
    reward = TrackingReward(env.references, env.layout)
    frames = torch.tensor([0, 10, 45, 60])
    env.engine.qpos[0, 2] += 0.19
    env.engine.qpos[1, 2] += 0.21
    for robot, angle in ((2, 0.45), (3, 0.6)):
        env.engine.qpos[robot, 3:7] = [np.cos(angle / 2), np.sin(angle / 2), 0, 0]
    assert reward(look(env), frames)[1].tolist() == [False, True, False, True]
