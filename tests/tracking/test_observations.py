"""Observations: layout index by index, histories, clips like simulations."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from prism_motor._checks import InputError
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import kinematics
from prism_motor.tracking.motions import find_clip, make_motion
from prism_motor.tracking.observations import (
    BODIES,
    JOINTS,
    KEY_BODIES,
    Layout,
    Observer,
    clip_observations,
    read_frames,
)
from tests.tracking.frames import frame, random_frames

FULL, COMPACT = Layout(), Layout(compact=True)


def test_sizes_are_the_papers_and_the_robots():
    assert FULL.sizes == {"state": 64, "last_action": 29, "history": 372, "privileged": 463}
    assert COMPACT.sizes == {"state": 64, "last_action": 29, "history": 372, "privileged": 163}
    assert (len(make_robot("g1-29").joints), len(kinematics().names)) == (JOINTS, BODIES)
    assert FULL.width(("state", "last_action", "history")) == 465
    for layout in (FULL, COMPACT):
        assert {stream: len(names) for stream, names in layout.names.items()} == layout.sizes


def test_sizes_need_no_simulator():
    code = (
        "import sys; sys.modules['mujoco'] = sys.modules['numpy'] = None;"
        "from prism_motor.tracking.observations import Layout; print(Layout().size)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "928", done.stderr


def test_names_are_unique_and_in_the_order_of_the_paper():
    names = [name for stream in FULL.names.values() for name in stream]
    assert len(set(names)) == len(names) == FULL.size == 928
    state, history, privileged = (FULL.names[k] for k in ("state", "history", "privileged"))
    assert (state[0], state[28]) == ("q_left_hip_pitch", "q_right_wrist_yaw")
    assert (state[29], state[57]) == ("dq_left_hip_pitch", "dq_right_wrist_yaw")
    assert state[58:] == (
        "gravity_x", "gravity_y", "gravity_z", "gyro_x", "gyro_y", "gyro_z",
    )  # fmt: skip
    # Key by key, and inside a key the newest first.
    assert history[0] == "action_left_hip_pitch[t-1]"
    assert history[29] == "action_left_hip_pitch[t-2]"
    assert history[116] == "gyro_x[t-1]"
    assert history[128] == "q_left_hip_pitch[t-1]"
    assert history[244] == "dq_left_hip_pitch[t-1]"
    assert history[360] == "gravity_x[t-1]"
    assert history[371] == "gravity_z[t-4]"
    assert privileged[0] == "pelvis_height"
    assert (privileged[1], privileged[90]) == ("left_hip_pitch_position_x", "head_position_z")
    assert privileged[91] == "pelvis_rotation_xx"
    assert privileged[91 + 186] == "pelvis_velocity_x"
    assert privileged[91 + 186 + 93] == "pelvis_angular_velocity_x"


@pytest.mark.parametrize("layout", [FULL, COMPACT])
def test_a_state_shows_as_its_names_say(layout):
    rng = np.random.default_rng(0)
    qpos = np.concatenate([rng.normal(size=(3, 7)), rng.uniform(-1, 1, (3, 29))], axis=1)
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    qvel = rng.normal(size=(3, 35))
    bodies = kinematics().bodies(qpos, qvel)
    rows = clip_observations(read_frames(qpos, qvel, bodies, layout), layout)
    joints = make_robot("g1-29").joints
    for n in range(3):
        values = dict(zip(sum(layout.names.values(), ()), rows[n].tolist(), strict=True))
        root = Rotation.from_quat(np.roll(qpos[n, 3:7], -1))
        down = root.inv().apply([0, 0, -1])
        for i, joint in enumerate(joints):
            angle = qpos[n, 7 + i] - joint.default
            assert values[f"q_{joint.name}"] == pytest.approx(angle, abs=1e-5)
            assert values[f"dq_{joint.name}"] == pytest.approx(qvel[n, 6 + i], rel=1e-5)
        for axis, letter in enumerate("xyz"):
            assert values[f"gravity_{letter}"] == pytest.approx(down[axis], abs=1e-5)
            assert values[f"gyro_{letter}"] == pytest.approx(0.25 * qvel[n, 3 + axis], rel=1e-5)
        assert values["pelvis_height"] == pytest.approx(qpos[n, 2], rel=1e-5)
        # What tests of the bodies show for all of them, for the one that is picked last.
        forward = root.apply([1, 0, 0])
        back = Rotation.from_euler("z", -np.arctan2(forward[1], forward[0]))
        head = kinematics().names.index(KEY_BODIES[-1])
        offset = back.apply(bodies.position[:, head, n] - qpos[n, :3])
        for axis, letter in enumerate("xyz"):
            assert values[f"head_position_{letter}"] == pytest.approx(offset[axis], abs=1e-5)


def test_a_state_of_a_clip_and_the_same_in_a_simulation_look_alike():
    motion = make_motion(find_clip("squat"))
    clip = read_frames(motion.qpos, motion.qvel, motion.bodies, FULL)
    simulated = kinematics().bodies(motion.qpos, motion.qvel)
    other = read_frames(motion.qpos, motion.qvel, simulated, FULL)
    poses = slice(0, 463 - 6 * 31)
    for name in ("joint_positions", "joint_velocities", "angular_velocity", "gravity"):
        assert torch.equal(getattr(clip, name), getattr(other, name))
    assert torch.equal(clip.bodies[:, poses], other.bodies[:, poses])
    # Velocities of clips are smoothed differences, those of simulations exact.
    assert torch.allclose(clip.bodies, other.bodies, atol=0.15)


def test_simulated_and_expert_frames_give_the_same_observation():
    frames = random_frames(9, FULL)
    actions = torch.randn(9, 29)
    expert = clip_observations(frames, FULL, actions)
    observer = Observer(FULL, 1, generator=torch.Generator())
    last = torch.zeros(1, 29)
    for t in range(9):
        seen = observer.observe(frame(frames, t), last)
        assert torch.equal(seen[0], expert[t])
        last = actions[t : t + 1]


def test_history_is_zero_after_a_reset_and_one_step_late():
    frames = random_frames(6, FULL)
    observer = Observer(FULL, 2, generator=torch.Generator())
    columns, steps = FULL.columns, []
    actions = torch.randn(6, 2, 29)
    for t in range(5):
        both = replace(frames, **{name: getattr(frames, name)[t : t + 2] for name in vars(frames)})
        if t == 3:
            observer.reset(torch.tensor([1]))
        steps.append(observer.observe(both, actions[t]))
    history = [one[:, columns["history"]] for one in steps]
    state = [one[:, columns["state"]] for one in steps]
    assert not history[0].any()
    assert not history[3][1].any()
    assert history[3][0].any()
    # The newest entry is the observation of the step before, with the action that was last then.
    assert torch.equal(history[2][:, :29], actions[1])
    assert torch.equal(history[2][:, 29:58], actions[0])
    assert not history[2][:, 58:116].any()
    assert torch.equal(history[2][:, 128:157], state[1][:, :29])
    assert torch.equal(history[2][:, 116:119], state[1][:, 61:64])
    assert torch.equal(history[4][1, :29], actions[3][1])
    assert not history[4][1, 29:116].any()


def test_noise_is_in_the_state_and_in_the_history_of_the_next_step():
    frames = random_frames(1, FULL)
    many = type(frames)(**{k: v.expand(4000, *v.shape[1:]) for k, v in vars(frames).items()})
    clean = clip_observations(frames, FULL)[0]
    observer = Observer(FULL, 4000, noise=1.0, generator=torch.Generator().manual_seed(0))
    first = observer.observe(many, torch.zeros(4000, 29))
    noise = first - clean
    largest = noise.abs().amax(0)
    state = FULL.columns["state"]
    limits = torch.cat(
        [torch.full((count,), size) for count, size in ((29, 0.01), (29, 0.5), (6, 0.05))]
    )
    assert (largest[state] <= limits + 1e-6).all()
    assert (largest[state] > 0.98 * limits).all()
    assert not largest[FULL.columns["privileged"]].any()
    second = observer.observe(many, torch.zeros(4000, 29))
    assert torch.equal(second[:, FULL.columns["history"]][:, 128:157], first[:, :29])


def test_a_clip_shorter_than_the_history_and_wrong_shapes():
    frames = random_frames(2, FULL)
    assert clip_observations(frames, FULL, torch.randn(2, 29)).shape == (2, 928)
    with pytest.raises(InputError, match=r"bodies must have the shape \(2, 463\)"):
        clip_observations(replace(frames, bodies=frames.bodies[:, :30]), FULL)
