from dataclasses import replace

import numpy as np
import torch

from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.mirror import Mirror, augment, mirror_frames
from prism_motor.locomotion.task import RandomisationConfig
from prism_motor.locomotion.tasks import TASKS

CONFIG = replace(
    TASKS["g1"],
    observations=replace(TASKS["g1"].observations, noise=0.0),
    randomisation=RandomisationConfig(),
)


def mirrored_states(qpos, qvel, robot):
    order, sign = list(robot.mirror), np.array(robot.mirror_sign)
    qpos2, qvel2 = qpos.copy(), qvel.copy()
    qpos2[:, 1] *= -1
    qpos2[:, [4, 6]] *= -1  # quaternion x and z
    qpos2[:, 7:] = qpos[:, 7:][:, order] * sign
    qvel2[:, 1] *= -1
    qvel2[:, [3, 5]] *= -1
    qvel2[:, 6:] = qvel[:, 6:][:, order] * sign
    return qpos2, qvel2


def test_a_mirrored_world_gives_mirrored_observations():
    """Step a robot and its mirror image under mirrored actions; compare what they see.

    The trunk's centre of mass is 0.15 mm off the middle, hence the tolerance.
    """
    one, two = VelocityEnv(CONFIG, 6, seed=1), VelocityEnv(CONFIG, 6, seed=1)
    mirror = Mirror(one.frame)
    qpos, qvel = mirrored_states(one.engine.qpos, one.engine.qvel, one.robot)
    two.engine.set_state(np.arange(6), qpos, qvel)
    two._read_state()
    steps = torch.tensor([3, 10, 20, 30, 40, 50])
    one.episode_length_buf[:] = steps
    two.episode_length_buf[:] = steps + 32  # half a cycle later
    two.commands.values = one.commands.values * torch.tensor([1.0, -1.0, -1.0])
    two.commands.heading = -one.commands.heading
    for env in (one, two):
        env.actor_history.reset(torch.arange(6))
        env.critic_history.reset(torch.arange(6))
        env.beat = env.gait.at(env.episode_length_buf)
        env._observe()
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):
        seen, expected = two.get_observations(), one.get_observations()
        torch.testing.assert_close(
            seen["policy"], mirror_frames(expected["policy"], mirror.actor), atol=5e-3, rtol=0
        )
        torch.testing.assert_close(
            seen["critic"], mirror_frames(expected["critic"], mirror.critic), atol=5e-3, rtol=0
        )
        action = 0.3 * torch.randn(6, 12, generator=generator)
        rewards = one.step(action)[1]
        mirrored = two.step(mirror_frames(action, mirror.action))[1]
        torch.testing.assert_close(rewards, mirrored, atol=2e-3, rtol=0)


def test_mirroring_twice_is_nothing():
    env = VelocityEnv(CONFIG, 3)
    mirror = Mirror(env.frame)
    for key, rule in (("policy", mirror.actor), ("critic", mirror.critic)):
        values = torch.randn_like(env.get_observations()[key])
        assert torch.equal(mirror_frames(mirror_frames(values, rule), rule), values)


def test_augment_appends_the_mirror_image():
    env = VelocityEnv(CONFIG, 3)
    observations, action = env.get_observations(), torch.randn(3, 12)
    both, actions = augment(env=env, obs=observations, actions=action)
    assert both.batch_size[0] == 6
    assert torch.equal(both["policy"][:3], observations["policy"])
    assert torch.equal(actions[:3], action)
    assert torch.equal(actions[3:], mirror_frames(action, Mirror(env.frame).action))
