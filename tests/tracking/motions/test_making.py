"""Our own motions: feet where they belong, centre of mass above them, and the walks."""

import numpy as np
import pytest

from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import kinematics
from prism_motor.tracking.motions.checks import check_clip, sole_heights
from prism_motor.tracking.motions.kinematic import (
    MOTIONS,
    RELAXED,
    MotionPlan,
    ease,
    make_kinematic,
    solve,
    swing,
)
from prism_motor.tracking.motions.walking import WALKS, clip_from_walk

NAMES = make_robot("g1-29").joint_names


@pytest.fixture(scope="module", params=MOTIONS)
def made(request):
    return request.param, make_kinematic(request.param)


def test_nothing_is_wrong_with_a_made_motion(made):
    _, clip = made
    assert check_clip(clip, contacts=True).problems() == []
    assert abs(np.diff(clip.joints, axis=0) * clip.fps).max() < 8  # and it is slow
    np.testing.assert_allclose(clip.joints[0], clip.joints[-1], atol=1e-3)  # ends as it began
    assert clip.licence == "Apache-2.0"


def test_standing_feet_stay_and_carry_the_centre_of_mass(made):
    name, clip = made
    soles = sole_heights(clip.qpos)
    standing = soles < 1e-3
    assert standing.any(axis=0).all()
    assert standing.all() or name in ("step", "kick")
    position, _ = kinematics().poses(clip.qpos)
    center = kinematics().center_of_mass(clip.qpos)
    for foot, body in enumerate(make_robot("g1-29").feet):
        place = position[:2, kinematics().names.index(body), standing[foot]]
        np.testing.assert_allclose(place, place[:, :1].repeat(place.shape[1], 1), atol=2e-3)
    # Over the feet: 12 cm in front of an ankle to 5 cm behind, and between the outer edges.
    ankles = position[:, [kinematics().names.index(b) for b in make_robot("g1-29").feet]]
    left = np.where(standing[0], ankles[1, 0], ankles[1, 1])
    right = np.where(standing[1], ankles[1, 1], ankles[1, 0])
    stance = np.where(standing[0], ankles[0, 0], ankles[0, 1])
    assert (center[0] - stance < 0.1).all()
    assert (center[0] - stance > -0.03).all()
    assert (center[1] < left + 0.02).all()
    assert (center[1] > right - 0.02).all()


def test_motions_do_what_they_are_called():
    def angles(name, joint):
        return make_kinematic(name).joints[:, NAMES.index(joint)]

    squat, kick = make_kinematic("squat"), make_kinematic("kick")
    assert squat.position[:, 2].min() < squat.position[0, 2] - 0.15
    assert sole_heights(kick.qpos)[1].max() > 0.15  # the right foot
    assert sole_heights(kick.qpos)[0].max() < 1e-3
    step = sole_heights(make_kinematic("step").qpos)
    assert (step.max(axis=1) > 0.05).all()
    assert angles("bow", "waist_pitch").max() > 0.3
    twist = angles("twist", "waist_yaw")
    assert twist.max() > 0.5
    assert twist.min() < -0.5
    wave, _ = kinematics().poses(make_kinematic("wave").qpos)
    right, left = (kinematics().names.index(f"{side}_wrist_yaw") for side in ("right", "left"))
    assert wave[2, right].max() > 1.2
    assert wave[2, left].max() < 1.0
    reach, _ = kinematics().poses(make_kinematic("reach").qpos)
    assert (reach[0, [left, right]].max(axis=-1) > 0.35).all()
    sway = make_kinematic("sway").position[:, 1]
    assert sway.max() > 0.06
    assert sway.min() < -0.06
    assert len(make_kinematic("stand")) == 401


def test_a_plan_out_of_reach_is_an_error():
    with pytest.raises(ValueError, match="out of reach"):
        solve(MotionPlan(height=1.2), 5)
    with pytest.raises(ValueError, match=r"Unknown motion 'kik'.*Did you mean 'kick'"):
        make_kinematic("kik")


def test_profiles_begin_and_end_at_rest():
    time = np.linspace(0, 4, 401)
    up = ease(time, 1, 3)
    assert up[0] == up[100] == 0
    assert up[300] == up[400] == 1
    assert abs(np.gradient(up)[[100, 300]]).max() < 1e-3
    wave = swing(time, 0.5, 3.5, 1.0)
    assert wave[0] == wave[-1] == 0
    assert abs(wave).max() == pytest.approx(1, abs=0.01)


def test_a_walk_is_mapped_to_all_joints():
    small = make_robot("g1")
    rng = np.random.default_rng(0)
    states = np.zeros((30, 19))
    states[:, 3], states[:, 2] = 1, 0.79
    states[:, :2] = [3.0, 4.0]
    states[:, 7:] = small.default_pose + 0.1 * rng.standard_normal((30, 12))
    clip = clip_from_walk("walk", states, 50.0, "g1-prism")
    for i, name in enumerate(small.joint_names):
        np.testing.assert_array_equal(clip.joints[:, NAMES.index(name)], states[:, 7 + i])
    np.testing.assert_array_equal(clip.position, [[0, 0, 0.79]] * 30)
    assert (clip.joints[:, NAMES.index("waist_yaw")] == 0).all()
    arm = clip.joints[:, NAMES.index("left_shoulder_pitch")] - RELAXED["shoulder_pitch"]
    hip = states[:, 7 + small.joint_names.index("right_hip_pitch")]
    np.testing.assert_allclose(arm, 0.7 * (hip - hip.mean()))
    assert "g1-prism" in clip.source
    with pytest.raises(ValueError, match="12-joint G1 have 19 numbers"):
        clip_from_walk("walk", np.zeros((9, 36)), 50.0, "x")


def test_walks_go_where_they_are_told():
    from prism_motor.tracking.motions.library import find_clip

    for name, (forward, sideways, turn) in WALKS.items():
        clip = find_clip(name)
        way = clip.position[-1] - clip.position[0]
        if not turn:
            assert np.sign(way[0]) == np.sign(forward) or not forward
            assert abs(way[0]) > 0.6 * abs(forward) * clip.seconds
            assert way[1] > 0.4 * sideways * clip.seconds - 0.5
        yaw = np.unwrap(2 * np.arctan2(clip.quaternion[:, 3], clip.quaternion[:, 0]))
        assert yaw[-1] - yaw[0] == pytest.approx(turn * clip.seconds, abs=1.5)
        assert (sole_heights(clip.qpos).max(axis=1) > 0.02).all()  # both feet step


@pytest.mark.slow
def test_the_shipped_policy_walks_as_recorded():
    from prism_motor.locomotion.policy import load_policy
    from prism_motor.locomotion.walks import record_walk

    states, rate = record_walk(load_policy("g1-prism"), WALKS["walk-forward"], seconds=2.0)
    assert rate == pytest.approx(50)
    assert states.shape == (101, 19)
    assert states[-1, 0] > 0.4
    with pytest.raises(ValueError, match="fell"):
        record_walk(load_policy("g1-prism"), (50.0, 50.0, 50.0), seconds=10.0)
