"""The second morphology: model, mirror image and the task on four legs."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch

from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.mirror import Mirror, mirror_frames
from prism_motor.locomotion.presets import make_config, observation_size
from prism_motor.locomotion.task import RandomisationConfig
from prism_motor.locomotion.tasks import TASKS
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model

TASK = TASKS["quadruped"]
QUIET = replace(
    TASK,
    observations=replace(TASK.observations, noise=0.0),
    randomisation=RandomisationConfig(),
)


@pytest.fixture(scope="module")
def body():
    robot = make_robot("quadruped")
    model = build_model(robot, timestep=0.005)
    return robot, model, mujoco.MjData(model)


def pose(body, angles):
    robot, model, data = body
    mujoco.mj_resetData(model, data)
    data.qpos[2], data.qpos[7:] = robot.stand_height, angles
    mujoco.mj_forward(model, data)
    return data


def test_joint_order_mass_and_drives(body):
    robot, model, _ = body
    legs = ("front_left", "front_right", "rear_left", "rear_right")
    names = [f"{leg}_{part}" for leg in legs for part in ("hip_roll", "hip_pitch", "knee")]
    assert [joint.name for joint in robot.joints] == names
    assert [model.actuator(i).name for i in range(model.nu)] == names
    assert [model.joint(i + 1).name for i in range(12)] == names
    assert model.body_mass.sum() == pytest.approx(12.08)
    np.testing.assert_allclose(model.actuator_forcerange[:3, 1], [20.4, 20.4, 30.6])
    np.testing.assert_allclose(robot.default_pose, [0, 0.75, -1.5] * 4)
    assert model.nmesh == 0


def test_default_pose_puts_the_feet_on_the_ground_under_the_hips(body):
    robot, model, _ = body
    data = pose(body, robot.default_pose)
    feet = np.array([data.body(foot).xpos for foot in robot.feet])
    np.testing.assert_allclose(feet[:, 2], robot.foot_offset, atol=2e-4)
    hips = np.array([data.body(foot.replace("foot", "hip_pitch")).xpos for foot in robot.feet])
    np.testing.assert_allclose(feet[:, :2], hips[:, :2], atol=1e-9)
    low, high = TASK.rewards.feet_distance
    assert low < np.linalg.norm(feet[0, :2] - feet[1, :2]) < high
    knees = np.array([data.body(knee).xpos for knee in robot.knees])
    low, high = TASK.rewards.knee_distance
    assert low < np.linalg.norm(knees[2, :2] - knees[3, :2]) < high
    assert TASK.rewards.foot_offset == robot.foot_offset
    soles = [model.geom(i).name for i in range(model.ngeom) if "_sole_" in model.geom(i).name]
    assert len(soles) == 4


def test_reference_swing_lifts_one_foot_to_its_target_height(body):
    robot = body[0]
    angles = robot.default_pose.copy()
    angles[[1, 2]] += TASK.gait.amplitude * np.array([1.0, -2.0])
    data = pose(body, angles)
    heights = [data.body(foot).xpos[2] - robot.foot_offset for foot in robot.feet]
    np.testing.assert_allclose(heights, [TASK.rewards.foot_height, 0, 0, 0], atol=3e-3)


def test_stands_under_pd_control(body):
    robot, model, _ = body
    data = pose(body, robot.default_pose)
    data.ctrl[:] = robot.default_pose
    touched = 0.0
    for _ in range(400):
        mujoco.mj_step(model, data)
        touched = max(touched, np.linalg.norm(data.sensor("trunk_force").data))
    assert touched == 0
    assert data.qpos[2] == pytest.approx(robot.stand_height, abs=0.02)
    assert 1 - 2 * (data.qpos[4] ** 2 + data.qpos[5] ** 2) > 0.999  # upright
    assert np.abs(data.qvel).max() < 0.1
    load = -sum(data.sensor(f"{foot}_force").data[2] for foot in robot.feet)
    assert load == pytest.approx(12.08 * 9.81, rel=0.02)


def test_the_robot_is_its_own_mirror_image(body):
    robot, model, _ = body
    angles = robot.default_pose + np.random.default_rng(0).uniform(-0.3, 0.3, 12)

    def bodies(q):
        data = pose(body, q)
        return {model.body(i).name: data.xipos[i].copy() for i in range(1, model.nbody)}

    one, other = bodies(angles), bodies(angles[list(robot.mirror)] * robot.mirror_sign)
    swap = {"left": "right", "right": "left"}
    for name, position in one.items():
        twin = "_".join(swap.get(part, part) for part in name.split("_"))
        np.testing.assert_allclose(position * [1, -1, 1], other[twin], atol=1e-9)


def test_the_gait_is_a_trot():
    env = VelocityEnv(QUIET, 1)
    steps = torch.arange(25)
    stance = env.gait.at(steps).stance
    assert torch.equal(stance[:, 0], stance[:, 3])
    assert torch.equal(stance[:, 1], stance[:, 2])
    assert (stance[:, 0] ^ stance[:, 1]).sum() >= 22  # else all four stand
    reference = env.gait.at(steps).reference - env.default_pose
    moving = (reference != 0).any(0).view(4, 3)
    assert moving.tolist() == [[False, True, True]] * 4


@pytest.mark.parametrize("config", [QUIET, TASK])
def test_sizes(config):
    env = VelocityEnv(config, 3)
    observations, rewards, dones, _ = env.step(torch.zeros(3, 12))
    assert observations["policy"].shape == (3, 5 * 47) == (3, observation_size(config)[0])
    assert observations["critic"].shape == (3, 3 * 77)
    assert rewards.shape == dones.shape == (3,)
    assert torch.isfinite(rewards).all()
    assert make_config("quadruped", "prism").task == TASK


def test_a_mirrored_world_gives_mirrored_observations():
    # Half a cycle must be a whole number of control steps for the two to meet.
    config = replace(QUIET, gait=replace(QUIET.gait, cycle=0.48))
    one, two = VelocityEnv(config, 4, seed=1), VelocityEnv(config, 4, seed=1)
    robot = one.robot
    qpos, qvel = one.engine.qpos.copy(), one.engine.qvel.copy()
    qpos[:, 7:] = qpos[:, 7:][:, list(robot.mirror)] * robot.mirror_sign
    two.engine.set_state(np.arange(4), qpos, qvel)
    two._read_state()
    for env, steps in ((one, 3), (two, 15)):
        everyone = torch.arange(4)
        env.episode_length_buf[:] = steps
        env.actor_history.reset(everyone)
        env.critic_history.reset(everyone)
        env.rewards.reset(everyone, env.state.foot_position[..., 2] - robot.foot_offset)
    two.commands.values = one.commands.values * torch.tensor([1.0, -1.0, -1.0])
    two.commands.heading = -one.commands.heading
    for env in (one, two):
        env.beat = env.gait.at(env.episode_length_buf)
        env._observe()
    mirror, generator = Mirror(one.frame), torch.Generator().manual_seed(0)
    for _ in range(12):
        seen, expected = two.get_observations(), one.get_observations()
        for key, rule in (("policy", mirror.actor), ("critic", mirror.critic)):
            torch.testing.assert_close(
                seen[key], mirror_frames(expected[key], rule), atol=1e-3, rtol=0
            )
        action = 0.3 * torch.randn(4, 12, generator=generator)
        rewards = one.step(action)[1]
        mirrored = two.step(mirror_frames(action, mirror.action))[1]
        torch.testing.assert_close(rewards, mirrored, atol=1e-3, rtol=0)
    assert one.state.foot_force[..., 2].max() > 20  # they did touch the ground


def test_trotting_on_the_spot_pays_more_than_standing():
    trot = VelocityEnv(QUIET, 4)
    still = VelocityEnv(replace(QUIET, actions=replace(QUIET.actions, on_reference=False)), 4)
    for env in (trot, still):
        env.contacts = 0.0
        for _ in range(100):
            env.step(torch.zeros(4, 12))
            env.contacts += env.rewards.terms["feet_contact_number"](env.last_step).mean().item()
        assert not env.terminated.any()
    assert trot.contacts > still.contacts + 10
