"""Whole robots: what they see, what is measured, what is random, when episodes end."""

import mujoco
import numpy as np
import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.sim.scene import colliding_geoms
from prism_motor.tracking.config import AuxiliaryConfig
from prism_motor.tracking.env import TrackingEnv
from prism_motor.tracking.observations import HISTORY_KEYS
from prism_motor.tracking.task import NOMINAL, StartConfig
from tests.tracking.robots import FULL, draw_actions, make_env, make_task, replace, short_references


@pytest.mark.parametrize("compact", [True, False])
def test_a_robot_placed_in_a_frame_sees_what_the_clip_sees_there(compact):
    env = make_env(compact=compact)
    frames = torch.tensor([0, 17, 71])
    env.begin_at(frames)
    seen = torch.cat([env.references.observations(env.layout, i) for i in (0, 1)])
    moving = env.layout.size - 6 * env.layout.bodies
    np.testing.assert_allclose(env.observations[:, :moving], seen[frames, :moving], atol=2e-5)
    # Clips have smoothed velocities of bodies; a robot has those that follow from its joints.
    apart = (env.observations[:, moving:] - seen[frames, moving:]).abs()
    assert apart.mean() < 0.02 * seen[frames, moving:].abs().max()
    assert apart.max() < 0.2 * seen[frames, moving:].abs().max()
    assert env.observations[:, env.layout.columns["history"]].count_nonzero() == 0
    assert torch.equal(env.frame, frames)
    assert env.clocks.tolist() == [0, 0, 0]


def test_episodes_begin_in_frames_of_clips_drawn_by_priority():
    env = make_env(envs=64)
    first, second = (env.frame < 40).sum(), (env.frame >= 40).sum()
    assert 15 < first < 49
    assert 15 < second < 49
    assert not ({39, 79} & set(env.frame.tolist()))  # the last frame has no successor
    np.testing.assert_array_equal(env.engine.qpos, env.references.qpos[env.frame.numpy()])
    env.priorities = torch.tensor([0.0, 1.0], dtype=torch.float64)
    env._begin(torch.arange(64))
    assert (env.frame >= 40).all()


def test_the_history_is_one_step_late():
    env = make_env()
    layout = env.layout
    seen, last = [env.observations], [torch.zeros(3, 29)]
    for step in range(4):
        actions = draw_actions(env, step)
        env.step(actions)
        seen.append(env.observations)
        last.append(actions)
    names = layout.names["history"]
    history = seen[4][:, layout.columns["history"]]
    assert torch.equal(seen[4][:, layout.columns["last_action"]], last[4])
    # The newest entry is of step 3: its last action is that of step 3, not of step 4.
    for age in range(1, layout.steps + 1):
        column = names.index(f"action_{env.robot.joint_names[5]}[t-{age}]")
        assert torch.equal(history[:, column], last[4 - age][:, 5])
        gyro = names.index(f"gyro_y[t-{age}]")
        state = layout.names["state"].index("gyro_y")
        assert torch.equal(history[:, gyro], seen[4 - age][:, state])
    assert len(HISTORY_KEYS) * layout.steps * 3 < len(names)


def by_hand(env, index, qpos, qvel, control, previous, actions):
    """Compute the six terms of one robot with scalar code on MuJoCo's own functions."""
    model, data = env.engine.model, mujoco.MjData(env.engine.model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, control
    for _ in range(env.task.substeps):
        mujoco.mj_step(model, data)
    joints = data.qpos[7:].copy()
    state = mujoco.MjData(model)
    state.qpos[:], state.qvel[:] = data.qpos, data.qvel
    mujoco.mj_forward(model, state)

    def force(body):
        """Sum the contact forces on a body, of the last physics step."""
        total = np.zeros(3)
        for number in range(data.ncon):
            contact, found = data.contact[number], np.zeros(6)
            mujoco.mj_contactForce(model, data, number, found)
            world = contact.frame.reshape(3, 3).T @ found[:3]
            bodies = [model.geom_bodyid[geom] for geom in contact.geom]
            total += world * (bodies[1] == model.body(body).id)
            total -= world * (bodies[0] == model.body(body).id)
        return total

    tilt = slip = 0.0
    for foot in env.robot.feet:
        rotation = state.body(foot).xmat.reshape(3, 3)
        gravity = rotation.T @ np.array([0.0, 0.0, -1.0])
        velocity = np.zeros(6)
        body = model.body(foot).id
        mujoco.mj_objectVelocity(model, state, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
        if force(foot)[2] > 1:
            tilt += float(np.hypot(gravity[0], gravity[1]))
        if np.linalg.norm(force(foot)) > 1:
            slip += float(np.linalg.norm(velocity[3:]))
    beyond = 0.0
    for number, angle in enumerate(joints):
        low, high = model.jnt_range[1 + number]
        margin = 0.025 * (high - low)
        beyond += max(0.0, low + margin - angle) + max(0.0, angle - (high - margin))
    touches = any(np.any(np.abs(force(b)) > 1) for b in (env.robot.base, *env.robot.touching))
    rolls = [env.robot.joint_names.index(f"{side}_ankle_roll") for side in ("left", "right")]
    return [
        sum((5 * a - 5 * b) ** 2 for a, b in zip(actions, previous, strict=True)),
        tilt,
        sum(joints[i] ** 2 for i in rolls),
        beyond,
        slip,
        float(touches),
    ]


def test_auxiliary_terms_agree_with_a_scalar_computation():
    names = list(vars(AuxiliaryConfig()))
    assert names == [
        "action_rate", "feet_orientation", "ankle_roll", "joint_limit", "slippage",
        "undesired_contact",
    ]  # fmt: skip
    env = make_env(envs=4, unit="effort")
    # One robot lies, so that it touches the ground with more than its feet.
    env.task = replace(env.task, starts=StartConfig(lying=1.0, lying_height=0.2))
    env._begin(torch.tensor([3]))
    previous = torch.zeros(4, 29)
    largest = np.zeros(6)
    for step in range(12):
        qpos, qvel = env.engine.qpos.copy(), env.engine.qvel.copy()
        actions = draw_actions(env, step, 0.6).clamp(-1, 1)
        targets = env.robot.default_pose + np.array(env.task.units) * actions.numpy()
        found = env.step(actions).terms.numpy()
        for index in range(4):
            wanted = by_hand(
                env, index, qpos[index], qvel[index], targets[index], previous[index].tolist(),
                actions[index].tolist(),
            )  # fmt: skip
            np.testing.assert_allclose(found[index], wanted, rtol=2e-3, atol=2e-4)
            largest = np.maximum(largest, wanted)
        previous = actions
    assert (largest > 0).all(), largest  # every term was put to the test


def test_the_feet_of_a_robot_that_stands_carry_it_and_their_tilt_counts():
    env = make_env(references=short_references(names=("stand",)))
    env.begin_at(torch.zeros(3, dtype=torch.long))
    hold = (torch.from_numpy(env.references.qpos[:1, 7:] - env.robot.default_pose)).float()
    for _ in range(15):
        step = env.step(hold.expand(3, -1) / torch.tensor(env.task.units))
    weight = sum(env.engine.sensor(f"{foot}_force")[:, 2] for foot in env.robot.feet)
    np.testing.assert_allclose(weight, -33.34 * 9.81, rtol=0.25)  # on the ground
    tilt = np.hypot(*step.bodies.rotation[2, :2][:, env._feet]).sum(axis=0)
    assert (tilt > 0).all()
    np.testing.assert_allclose(step.terms[:, 1], tilt, rtol=1e-5)


def test_dynamics_are_in_the_models():
    env = make_env(envs=200, randomisation=FULL)
    base, models = env.engine.model, env.engine._models
    soles = colliding_geoms(base, env.robot.feet)
    friction = np.array([model.geom_friction[soles, 0] for model in models])
    assert (friction == friction[:, :1]).all()
    assert 0.5 <= friction.min() < 0.55
    assert 1.2 < friction.max() <= 1.25
    heavy = base.body_mass > 0  # the head is a point of the torso
    assert heavy.sum() == 30
    ratio = np.array([model.body_mass[heavy] / base.body_mass[heavy] for model in models])
    assert 0.95 <= ratio.min() < 0.952
    assert 1.048 < ratio.max() <= 1.05
    assert np.abs(np.corrcoef(ratio.T) - np.eye(ratio.shape[1])).max() < 0.35  # link by link
    inertia = np.array(
        [model.body_inertia[heavy, 0] / base.body_inertia[heavy, 0] for model in models]
    )
    np.testing.assert_allclose(inertia, ratio)
    torso = base.body("torso").id
    shifts = np.array([model.body_ipos - base.body_ipos for model in models])
    assert 0.019 < np.abs(shifts[:, torso]).max() <= 0.02
    assert np.count_nonzero(np.delete(shifts, torso, axis=1)) == 0
    heavier = make_env(randomisation=replace(NOMINAL, mass_scale=1.15)).engine._models[0]
    np.testing.assert_allclose(heavier.body_mass, 1.15 * base.body_mass)


def test_a_joint_offset_is_in_targets_and_observations_alike():
    plain = make_env()
    random = replace(NOMINAL, joint_offset=0.02)
    env = make_env(randomisation=random)
    frames = torch.tensor([3, 20, 50])
    plain.begin_at(frames)
    env.begin_at(frames)
    assert 0.015 < env.offsets.abs().max() <= 0.02
    joints = slice(0, 29)
    difference = plain.observations[:, joints] - env.observations[:, joints]
    np.testing.assert_allclose(difference, env.offsets, atol=1e-6)
    np.testing.assert_array_equal(plain.engine.qpos, env.engine.qpos)  # the robot is where it is
    actions = draw_actions(env, 0, 0.1)
    env.step(actions)
    plain.step(actions + env.offsets.float() / torch.tensor(plain.task.units))
    np.testing.assert_allclose(env.engine.qpos, plain.engine.qpos, atol=1e-6)
    before = env.offsets.clone()
    env._begin(torch.tensor([1]))
    assert torch.equal(env.offsets[[0, 2]], before[[0, 2]])
    assert not torch.equal(env.offsets[1], before[1])


def test_pushes_come_after_whole_seconds_and_are_as_large_as_set():
    random = replace(NOMINAL, push_seconds=(1, 2), push_velocity=0.5, push_rate=0.4)
    env = make_env(envs=40, randomisation=random)
    calm = make_env(envs=40)
    frames = torch.zeros(40, dtype=torch.long)
    env.begin_at(frames)
    calm.begin_at(frames)
    first = env._push_in.clone()
    assert set(first.tolist()) == {50, 100}
    for step in range(1, 51):
        actions = torch.zeros(40, 29)
        env.step(actions)
        if step == 50:
            break
        calm.step(actions)
        np.testing.assert_array_equal(env.engine.qpos, calm.engine.qpos)
    calm.step(actions)
    change = env.engine.qvel - calm.engine.qvel
    due = first.numpy() == 50
    assert np.count_nonzero(change[~due]) == 0
    planar, angular = np.abs(change[due, :2]), np.abs(change[due, 3:6])
    assert 0.4 < planar.max() <= 0.5
    assert 0.33 < angular.max() <= 0.4
    assert np.count_nonzero(change[due, 2]) == np.count_nonzero(change[:, 6:]) == 0
    assert set(env._push_in[torch.from_numpy(due)].tolist()) <= {50, 100}


def test_lying_starts_turn_the_pose_of_a_frame_by_a_right_angle():
    from scipy.spatial.transform import Rotation

    references = short_references()
    task = make_task(references, starts=StartConfig(lying=0.3))
    env = TrackingEnv(task, references, 300)
    wanted = references.qpos[env.frame.numpy()]
    lying = env.engine.qpos[:, 2] != wanted[:, 2]
    assert 60 < lying.sum() < 120
    assert (env.engine.qpos[lying, 2] == 0.5).all()
    np.testing.assert_array_equal(env.engine.qpos[:, 7:], wanted[:, 7:])
    np.testing.assert_array_equal(env.engine.qpos[~lying], wanted[~lying])

    def rotation(qpos):
        return Rotation.from_quat(qpos[:, [4, 5, 6, 3]])

    turn = rotation(env.engine.qpos[lying]) * rotation(wanted[lying]).inv()
    angles = turn.as_rotvec()
    np.testing.assert_allclose(np.abs(angles[:, 0]), np.pi / 2, atol=1e-6)
    np.testing.assert_allclose(angles[:, 1:], 0, atol=1e-6)
    assert not env.stands()[torch.from_numpy(lying)].any()


def test_an_episode_lasts_501_steps_whatever_happens():
    task = make_task(short_references(), starts=StartConfig(lying=0.0, duration=10.0))
    assert task.episode_steps == 500
    env = make_env(envs=1, substeps=1, timestep=0.02, starts=task.starts)
    env.engine.step = lambda targets: None  # nothing has to move for that
    ended = [bool(env.step(torch.zeros(1, 29)).ends) for _ in range(501)]
    assert ended == [False] * 500 + [True]
    assert env.clocks.tolist() == [0]


def test_after_a_fall_an_episode_goes_on_for_as_long_as_set():
    env = make_env(envs=2, starts=StartConfig(lying=0.0, after_fall=0.1))
    qpos = env.engine.qpos.copy()
    qpos[0, 2], qpos[0, 3:7] = 0.2, (np.sqrt(0.5), np.sqrt(0.5), 0, 0)
    env.engine.set_state(np.arange(2), qpos, np.zeros((2, 35)))
    env.engine.step = lambda targets: None
    ends = [env.step(torch.zeros(2, 29)) for _ in range(6)]
    assert [step.ends.tolist() for step in ends] == [[False, False]] * 5 + [[True, False]]
    assert ends[0].upright.tolist() == [False, True]
    assert env.clocks.tolist() == [0, 6]
    assert env.stands().all()


def test_a_judge_ends_further_episodes_before_new_ones_begin():
    env = make_env()
    env.begin_at(torch.tensor([0, 1, 2]))
    step = env.step(torch.zeros(3, 29), lambda step: torch.tensor([False, True, False]))
    assert step.ends.tolist() == [False, True, False]
    assert env.clocks.tolist() == [1, 0, 1]
    assert not np.allclose(step.qpos[1], env.engine.qpos[1])  # what it led to is before the reset
    np.testing.assert_array_equal(step.qpos[[0, 2]], env.engine.qpos[[0, 2]])
    assert env.observations[1, env.layout.columns["history"]].count_nonzero() == 0
    assert env.observations[1, env.layout.columns["last_action"]].count_nonzero() == 0


def walk(env, first, count):
    for step in range(first, first + count):
        env.step(draw_actions(env, step))
    return env


RANDOM = replace(FULL, push_seconds=(1,))
BUSY = {"randomisation": RANDOM, "starts": StartConfig(lying=0.3, duration=0.5, after_fall=0.2)}


def test_a_saved_state_continues_to_the_bit():
    env = walk(make_env(envs=6, **BUSY), 0, 30)
    saved = {name: value.clone() for name, value in env.state_dict().items()}
    walk(env, 30, 60)
    other = make_env(envs=6, **BUSY)
    other.load_state_dict(saved)
    walk(other, 30, 60)
    for name, value in env.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    assert torch.equal(env.observations, other.observations)


def test_threads_do_not_change_the_result_and_seeds_do():
    one, two = (walk(make_env(envs=6, threads=n, **BUSY), 0, 40) for n in (1, 2))
    assert torch.equal(one.observations, two.observations)
    other = walk(make_env(envs=6, seed=1, **BUSY), 0, 40)
    assert not torch.equal(one.observations, other.observations)


def test_a_task_without_units_is_refused():
    references = short_references()
    task = replace(make_task(references), units=())
    with pytest.raises(InputError, match="prepare the task first"):
        TrackingEnv(task, references, 1)
