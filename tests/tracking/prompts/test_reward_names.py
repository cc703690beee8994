"""Rewards of prompts: their terms against scalar computations, their names, what they prefer."""

import math

import mujoco
import numpy as np
import pytest

from prism_motor._checks import InputError
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model
from prism_motor.tracking.bodies import kinematics
from prism_motor.tracking.motions import find_clip, make_motion
from prism_motor.tracking.prompts.reward_names import KINDS, example_rewards, find_reward
from prism_motor.tracking.prompts.reward_terms import RewardStates, tolerance

HEIGHT = 0.7842


def falloff(value, low, high, margin, at_margin, shape):
    """The tolerance of dm_control's documentation, one value at a time."""
    if low <= value <= high:
        return 1.0
    distance = (low - value if value < low else value - high) / margin
    if shape == "gaussian":
        scale = math.sqrt(-2 * math.log(at_margin))
        return math.exp(-0.5 * (distance * scale) ** 2)
    scaled = distance * (1 - at_margin)
    return 1 - scaled if scaled < 1 else 0.0


def states(count, seed=0):
    rng = np.random.default_rng(seed)
    qpos = np.zeros((count, 36))
    qpos[:, :3] = rng.normal(size=(count, 3)) * 0.3 + (0, 0, 0.7)
    qpos[:, 3:7] = rng.normal(size=(count, 4)) * 0.4 + (1, 0, 0, 0)
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    low, high = kinematics().limits.T
    qpos[:, 7:] = low + rng.random((count, 29)) * (high - low)
    return qpos, rng.normal(size=(count, 35)) * 0.7


def standing(count=1, height=HEIGHT, velocity=(0.0, 0.0), yaw=0.0, turning=(0.0, 0.0, 0.0)):
    qpos, qvel = np.zeros((count, 36)), np.zeros((count, 35))
    qpos[:, 2], qpos[:, 3], qpos[:, 6] = height, math.cos(yaw / 2), math.sin(yaw / 2)
    qpos[:, 7:] = make_robot("g1-29").default_pose
    qvel[:, :2], qvel[:, 3:6] = velocity, turning
    return qpos, qvel


def ask(name, *args, **kwargs):
    return float(find_reward(name)(*standing(*args, **kwargs))[0])


# Terms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "margin", "at_margin", "shape"),
    [
        (0.5, np.inf, 0.5, 0.01, "linear"),
        (0.0, 0.1, 3.0, 0.0, "linear"),
        (0.27, 0.33, 0.15, 0.5, "gaussian"),
        (0.0, 0.0, 0.2, 0.1, "gaussian"),
    ],
)
def test_tolerance_is_that_of_one_value_at_a_time(low, high, margin, at_margin, shape):
    values = np.linspace(-4, 4, 801)
    found = tolerance(values, low, high, margin, at_margin=at_margin, shape=shape)
    expected = [falloff(value, low, high, margin, at_margin, shape) for value in values]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    at_the_margin = tolerance(np.array([low - margin]), low, high, margin,
                              at_margin=at_margin, shape=shape)  # fmt: skip
    assert at_the_margin[0] == pytest.approx(at_margin)


def test_bounds_that_make_no_sense_are_refused():
    assert tolerance(np.array([0.9, 1.0, 1.1]), 1, 1, 0).tolist() == [0, 1, 0]
    with pytest.raises(InputError, match="low <= high"):
        tolerance(np.zeros(1), 1, 0, 1)


def test_centre_of_mass_and_bodies_are_those_of_mujoco():
    robot = make_robot("g1-29")
    model = build_model(robot, timestep=0.005)
    data = mujoco.MjData(model)
    qpos, qvel = states(6)
    seen = RewardStates(qpos, qvel)
    for i in range(6):
        data.qpos[:], data.qvel[:] = qpos[i], qvel[i]
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        ahead = data.body("pelvis").xmat.reshape(3, 3)[:, 0]
        yaw = math.atan2(ahead[1], ahead[0])
        turn = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])
        np.testing.assert_allclose(
            seen.velocity[:2, i], turn @ data.subtree_linvel[1][:2], atol=1e-9
        )
        np.testing.assert_allclose(seen.turning[:, i], qvel[i, 3:6], atol=1e-9)
        up = data.body("torso").xmat.reshape(3, 3)[:, 2]
        np.testing.assert_allclose(seen.lean[:, i], [*(turn @ up[:2]), up[2]], atol=1e-9)
        assert seen.height[i] == pytest.approx(data.body("pelvis").xpos[2])
        heights = [data.body(name).xpos[2] for name in ("left_wrist_yaw", "right_wrist_yaw")]
        np.testing.assert_allclose(
            seen.heights(("left_wrist_yaw", "right_wrist_yaw"))[:, i], heights, atol=1e-9
        )


def test_a_walking_reward_is_the_product_of_its_terms():
    qpos, qvel = states(40, seed=1)
    found = find_reward("move-ego-90-0.3")(qpos, qvel)
    seen = RewardStates(qpos, qvel)
    for i in range(40):
        x, y, _ = seen.velocity[:, i]
        speed = math.hypot(x, y)
        apart = sum((seen.lean[k, i] - (0.073, 0, 1)[k]) ** 2 for k in range(3))
        quick = falloff(speed, 0.27, 0.33, 0.15, 0.5, "gaussian")
        expected = (
            falloff(seen.height[i], 0.5, math.inf, 0.5, 0.01, "linear")
            * falloff(apart, 0, 0.1, 3, 0, "linear")
            * (5 * quick + 1) / 6
            * (y / speed + 1) / 2
        )  # fmt: skip
        assert found[i] == pytest.approx(expected, abs=1e-12)


# What they prefer ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "better", "worse"),
    [
        ("stand", {}, {"velocity": (0.2, 0.0)}),
        ("stand", {}, {"height": 0.3}),
        ("move-ego-0-0", {}, {"turning": (0.0, 0.0, 0.5)}),
        ("move-ego-0-0.5", {"velocity": (0.5, 0.0)}, {"velocity": (-0.5, 0.0)}),
        ("move-ego-90-0.5", {"velocity": (0.0, 0.5)}, {"velocity": (0.0, -0.5)}),
        ("move-ego--90-0.5", {"velocity": (0.0, -0.5)}, {"velocity": (0.0, 0.5)}),
        ("move-ego-180-0.5", {"velocity": (-0.5, 0.0)}, {"velocity": (-1.5, 0.0)}),
        ("move-ego-low0.5-0-0.3", {"velocity": (0.3, 0.0), "height": 0.5}, {"velocity": (0.3, 0)}),
        ("rotate-z-2-0.5", {"turning": (0, 0, 2.0)}, {"turning": (0, 0, -2.0)}),
        ("rotate-z--2-0.5", {"turning": (0, 0, -2.0)}, {"turning": (0, 0, 2.0)}),
        ("rotate-x-2-0.5", {"turning": (2.0, 0, 0)}, {"turning": (0, 0, 2.0)}),
        ("crouch-0.4", {"height": 0.4}, {}),
        ("sitonground", {"height": 0.15}, {}),
    ],
)
def test_a_reward_prefers_what_it_asks_for(name, better, worse):
    assert ask(name, **better) > ask(name, **worse)


def test_directions_are_the_robots_own():
    for yaw in (0.0, 1.0, -2.5):
        ahead = (0.5 * math.cos(yaw), 0.5 * math.sin(yaw))
        assert ask("move-ego-0-0.5", velocity=ahead, yaw=yaw) == pytest.approx(
            ask("move-ego-0-0.5", velocity=(0.5, 0.0))
        )


def test_raised_arms_are_told_apart():
    motion = make_motion(find_clip("wave"))  # with the right hand
    wrists = kinematics().poses(motion.qpos)[0][2]
    names = kinematics().names
    left, right = (wrists[names.index(f"{side}_wrist_yaw")] for side in ("left", "right"))
    frame = int(np.argmax(np.maximum(left, right)))
    raised = "l-m" if right[frame] > left[frame] else "m-l"
    other = "m-l" if raised == "l-m" else "l-m"
    still = np.zeros((1, 35))
    pose = motion.qpos[frame : frame + 1]
    assert find_reward(f"raisearms-{raised}")(pose, still) > 0.8
    assert find_reward(f"raisearms-{other}")(pose, still) < 0.05


# Names --------------------------------------------------------------------------------------------


def test_every_example_is_read_by_its_own_family_and_lies_between_0_and_1():
    qpos, qvel = states(50, seed=2)
    for kind in KINDS:
        for name in kind.examples:
            reward = find_reward(name)
            assert reward.kind is kind
            found = reward(qpos, qvel)
            assert found.shape == (50,)
            assert ((found >= 0) & (found <= 1)).all(), name
    assert len(example_rewards()) == len(set(example_rewards())) >= 24


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raisearms-m", "Did you mean raisearms-m-m"),
        ("move-ego-0", "move-ego-ANGLE-SPEED: move at SPEED m/s"),
        ("mvoe-ego-0-0.3", "Did you mean move-ego-0-0.3"),
        ("rotate-w-1-0.5", r"rotate-\{x,y,z\}-RATE-H"),
        ("raisearms-h-l", "Unknown reward 'raisearms-h-l'"),
        ("", "Unknown reward ''"),
        ("move-ego-0-99", "SPEED must be from 0 to 5, got 99"),
        ("move-ego-270-1", "ANGLE must be from -180 to 180, got 270"),
        ("crouch-2", "H must be from 0.15 to 0.8, got 2"),
        ("crouch-nan", "Unknown reward"),
        ("x" * 5000, "Unknown reward"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest_and_the_grammar(name, words):
    with pytest.raises(InputError, match=words):
        find_reward(name)


def test_states_must_fit_together():
    with pytest.raises(InputError, match="as many positions as velocities"):
        RewardStates(np.zeros((3, 36)), np.zeros((2, 35)))
