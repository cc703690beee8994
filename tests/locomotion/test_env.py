from dataclasses import replace

import numpy as np
import pytest
import torch

from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.observations import actor_names
from prism_motor.locomotion.task import RandomisationConfig
from prism_motor.locomotion.tasks import TASKS

QUIET = replace(
    TASKS["g1"],
    observations=replace(TASKS["g1"].observations, noise=0.0),
    randomisation=RandomisationConfig(),
)


def make(config=QUIET, num_envs=4, seed=0):
    return VelocityEnv(config, num_envs, seed=seed)


def actions(env, seed):
    return 0.3 * torch.randn(env.num_envs, 12, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("preset", "actor", "critic"), [("paper", 705, 219), ("g1", 705, 219), ("laptop", 235, 219)]
)
def test_sizes(preset, actor, critic):
    env = make(TASKS[preset])
    observations, rewards, dones, extras = env.step(torch.zeros(4, 12))
    assert observations["policy"].shape == (4, actor)
    assert observations["critic"].shape == (4, critic)
    assert rewards.shape == dones.shape == extras["time_outs"].shape == (4,)
    assert env.max_episode_length == (1200 if preset == "laptop" else 2400)


def test_actor_frame_index_by_index():
    env = make()
    for i in range(7):
        env.step(actions(env, i))
    frame = env.get_observations()["policy"][:, -47:]
    state, command = env.state, env.commands.values
    angle = 2 * np.pi * env.episode_length_buf * 0.01 / 0.64
    torch.testing.assert_close(frame[:, 0], torch.sin(angle).float(), atol=1e-5, rtol=0)
    torch.testing.assert_close(frame[:, 1], torch.cos(angle).float(), atol=1e-5, rtol=0)
    torch.testing.assert_close(frame[:, 2:4], 2 * command[:, :2])
    torch.testing.assert_close(frame[:, 4], command[:, 2])
    q = torch.from_numpy(env.engine.qpos[:, 7:]).float()
    dq = torch.from_numpy(env.engine.qvel[:, 6:]).float()
    torch.testing.assert_close(frame[:, 5:17], q - env.default_pose)
    torch.testing.assert_close(frame[:, 17:29], 0.05 * dq)
    torch.testing.assert_close(frame[:, 29:41], actions(env, 6))
    torch.testing.assert_close(frame[:, 41:44], torch.from_numpy(env.engine.qvel[:, 3:6]).float())
    torch.testing.assert_close(frame[:, 44:47], state.euler)
    names = actor_names(QUIET)
    assert len(names) == 705
    assert names[-47:][20] == "dq_left_knee[t]"
    assert names[11 * 47 + 20] == "dq_left_knee[t-3]"


def test_critic_frame_index_by_index():
    config = replace(QUIET, randomisation=TASKS["g1"].randomisation)
    env = make(config)
    for i in range(5):
        env.step(actions(env, i))
    frame = env.get_observations()["critic"][:, -73:]
    state = env.state
    torch.testing.assert_close(frame[:, :29], env.get_observations()["policy"][:, -47:][:, :29])
    torch.testing.assert_close(frame[:, 29:41], env.actions[0])
    torch.testing.assert_close(
        frame[:, 41:53], state.q - env.gait.at(env.episode_length_buf).reference
    )
    torch.testing.assert_close(frame[:, 53:56], 2 * state.velocity)
    torch.testing.assert_close(frame[:, 56:59], state.angular_velocity)
    torch.testing.assert_close(frame[:, 59:62], state.euler)
    torch.testing.assert_close(frame[:, 62:67], env.push)
    torch.testing.assert_close(frame[:, 67], env.friction)
    torch.testing.assert_close(frame[:, 68], env.base_mass / 30)
    torch.testing.assert_close(frame[:, 69:71], env.gait.at(env.episode_length_buf).stance.float())
    torch.testing.assert_close(frame[:, 71:73], (state.foot_force[..., 2] > 5).float())


def test_history_is_oldest_first_and_zero_before_the_episode():
    env = make()
    first = env.get_observations()["policy"].view(4, 15, 47)
    assert (first[:, :14] == 0).all()
    assert (first[:, 14] != 0).any()
    for i in range(3):
        env.step(actions(env, i))
    later = env.get_observations()["policy"].view(4, 15, 47)
    torch.testing.assert_close(later[:, 11], first[:, 14])
    assert (later[:, :11] == 0).all()


def test_a_nan_does_not_survive_a_reset():
    env = make()
    env.actor_history.values[1] = float("nan")
    env.actor_history.reset(torch.tensor([1]))
    assert torch.isfinite(env.get_observations()["policy"]).all()


def test_observation_noise_has_the_stated_size():
    noisy = replace(QUIET, observations=TASKS["g1"].observations)
    env = make(noisy, num_envs=2000)
    difference = env.get_observations()["policy"][:, -47:].clone()
    difference[:, 5:17] -= env.state.q - env.default_pose
    difference[:, 17:29] -= 0.05 * env.state.dq
    difference[:, 41:44] -= env.state.angular_velocity
    difference[:, 44:47] -= env.state.euler
    std = difference.std(0)
    for part, expected in (
        (slice(5, 17), 0.03),
        (slice(17, 29), 0.015),
        (slice(41, 44), 0.06),
        (slice(44, 47), 0.018),
    ):
        torch.testing.assert_close(
            std[part], torch.full_like(std[part], expected), rtol=0.08, atol=0
        )
    assert (std[29:41] == 0).all()


def test_same_seed_same_run_other_seed_other_run():
    def run(seed):
        env = make(TASKS["g1"], num_envs=8, seed=seed)
        total = torch.zeros(8)
        for i in range(15):
            observations, rewards, _, _ = env.step(actions(env, i))
            total += rewards
        return observations["policy"], total

    one, two, other = run(3), run(3), run(4)
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1], two[1])
    assert not torch.equal(one[0], other[0])


@pytest.mark.parametrize("preset", ["g1", "laptop"])
def test_state_dict_continues_exactly(preset):
    env = make(TASKS[preset], num_envs=8, seed=3)
    env.episode_length_buf[:] = torch.arange(8) * 110
    for i in range(10):
        env.step(3 * actions(env, i))
    saved = env.state_dict()
    other = make(TASKS[preset], num_envs=8, seed=3)
    other.load_state_dict(saved)
    for i in range(10, 60):
        one, two = env.step(3 * actions(env, i)), other.step(3 * actions(env, i))
        assert torch.equal(one[0]["policy"], two[0]["policy"])
        assert torch.equal(one[0]["critic"], two[0]["critic"])
        assert torch.equal(one[1], two[1])
        assert torch.equal(one[2], two[2])
    with pytest.raises(ValueError, match=r"differ in .*actor_history"):
        make(TASKS[preset], num_envs=4).load_state_dict(saved)


def test_action_reaches_the_joint_target():
    env = make()
    a = actions(env, 0)
    env.step(a)
    expected = env.default_pose + 0.25 * a
    np.testing.assert_allclose(env.engine._targets, expected.double().numpy(), atol=1e-6)
    laptop = make(replace(TASKS["laptop"], randomisation=RandomisationConfig()))
    laptop.episode_length_buf[:] = 7
    laptop.advance()
    laptop._observe()
    reference = laptop.gait.at(torch.full((4,), 7), laptop.commands.values).reference
    laptop.step(a)
    np.testing.assert_allclose(laptop.engine._targets, (reference + 0.25 * a).numpy(), atol=1e-6)


def test_delay_mixes_in_the_previous_applied_action():
    config = replace(QUIET, randomisation=RandomisationConfig(action_delay=0.5))
    env = make(config, num_envs=500)
    env.step(torch.zeros(500, 12))
    env.step(torch.ones(500, 12))
    applied = env.actions[0]
    assert (applied == applied[:, :1]).all()  # one draw for all joints
    assert applied.min() >= 0.5
    assert applied.mean().item() == pytest.approx(0.75, abs=0.02)


def test_action_noise_is_multiplicative():
    config = replace(QUIET, randomisation=RandomisationConfig(action_noise=0.02))
    env = make(config, num_envs=500)
    raw = torch.ones(500, 12)
    raw[:, 0] = 0
    env.step(raw)
    assert (env.actions[0][:, 0] == 0).all()
    assert env.actions[0][:, 1:].std().item() == pytest.approx(0.02, rel=0.1)


def test_actions_are_clipped():
    env = make()
    env.step(torch.full((4, 12), 100.0))
    assert (env.actions[0] == 18).all()


def test_falling_terminates_and_resets():
    env = make()
    env.engine.qpos[1, 2] = 0.3
    env.episode_length_buf[:] = 5
    _, _, dones, extras = env.step(torch.zeros(4, 12))
    assert dones.tolist() == [0, 1, 0, 0]
    assert env.terminated.tolist() == [False, True, False, False]
    assert extras["time_outs"].sum() == 0
    assert env.episode_length_buf.tolist() == [6, 0, 6, 6]
    assert env.engine.qpos[1, 2] == pytest.approx(0.80)
    history = env.get_observations()["policy"].view(4, 15, 47)
    assert (history[1, :14] == 0).all()
    assert (env.state.velocity[1] == 0).all()  # the first observation is of the new episode


def test_the_literal_preset_ends_on_base_contact_only():
    env = make(replace(TASKS["paper"], randomisation=RandomisationConfig()))
    env.engine.qpos[0, 3:7] = [0.7071, 0.7071, 0, 0]  # on its side, in the air
    env.engine.qpos[0, 2] = 1.5
    _, _, dones, _ = env.step(torch.zeros(4, 12))
    assert dones.sum() == 0
    for _ in range(120):
        _, _, dones, _ = env.step(torch.zeros(4, 12))
        if dones[0]:
            break
    assert dones[0]


def test_time_outs_are_fresh_every_step():
    # The original hands PPO the flags of the last step in which some environment was reset.
    env = make()
    env.episode_length_buf[2] = env.max_episode_length
    _, _, dones, extras = env.step(torch.zeros(4, 12))
    assert extras["time_outs"].tolist() == [0, 0, 1, 0]
    assert dones.tolist() == [0, 0, 1, 0]
    _, _, _, extras = env.step(torch.zeros(4, 12))
    assert extras["time_outs"].sum() == 0


def test_commands_change_every_eight_seconds_and_rewards_see_the_new_one():
    env = make()
    before = env.commands.values[:, :2].clone()
    env.episode_length_buf[:] = 799
    env.step(torch.zeros(4, 12))
    assert (env.commands.values[:, :2] != before).any()
    torch.testing.assert_close(env.last_step.command, env.commands.values)


def test_pushes_overwrite_the_base_velocity():
    config = replace(QUIET, randomisation=RandomisationConfig(push_every=0.02))
    env = make(config, num_envs=200)
    env.step(torch.zeros(200, 12))
    assert env.push.abs().sum() == 0
    env.step(torch.zeros(200, 12))
    velocity = torch.from_numpy(env.engine.qvel[:, :2]).float()
    torch.testing.assert_close(velocity, env.push[:, :2])
    assert velocity.abs().max() <= 0.2
    assert 0.15 < env.push[:, 2:].abs().max() <= 0.4


def test_dynamics_are_drawn_within_their_ranges():
    env = make(TASKS["paper"], num_envs=300)
    assert 0.35 <= env.friction.min() < 0.4
    assert 1.25 < env.friction.max() <= 1.3
    assert env.base_mass.min() == pytest.approx(17.735 - 5, abs=0.2)
    assert env.base_mass.max() == pytest.approx(17.735 + 5, abs=0.2)
