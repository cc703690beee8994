"""Velocities and resampling, against the formulas written out frame by frame."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from prism_motor.tracking.bodies import kinematics
from prism_motor.tracking.motions.sampling import body_velocities, make_motion, resample

from .clips import make_clip


def smooth(values):
    """Average over time with a Gaussian of two frames, ends repeated; (..., T)."""
    count = values.shape[-1]
    offsets = np.arange(-8, 9)
    weights = np.exp(-0.5 * (offsets / 2.0) ** 2)
    weights /= weights.sum()
    places = [np.clip(np.arange(count) + offset, 0, count - 1) for offset in offsets]
    return sum(w * values[..., place] for w, place in zip(weights, places, strict=True))


def test_body_velocities_are_smoothed_differences():
    clip = make_clip(frames=24, fps=30.0)
    position, rotation = kinematics().poses(clip.qpos)
    linear, angular = np.zeros_like(position), np.zeros_like(position)
    for t in range(24):
        before, after = max(t - 1, 0), min(t + 1, 23)
        linear[..., t] = (position[..., after] - position[..., before]) / (after - before) * 30
        first = min(t, 22)  # the last one is repeated
        for b in range(31):
            one, two = (Rotation.from_matrix(rotation[:, :, b, i]) for i in (first, first + 1))
            angular[:, b, t] = (two * one.inv()).as_rotvec() * 30
    velocity, turning = body_velocities(clip)
    np.testing.assert_allclose(velocity, smooth(linear), atol=1e-9)
    np.testing.assert_allclose(turning, smooth(angular), atol=1e-9)


def test_joint_velocities_are_forward_differences():
    clip = make_clip(frames=12)
    motion = make_motion(clip)
    expected = np.diff(clip.joints, axis=0) * 50
    np.testing.assert_allclose(motion.joint_velocity[:-1], expected, atol=1e-9)
    np.testing.assert_allclose(motion.joint_velocity[-1], expected[-1], atol=1e-9)


@pytest.mark.parametrize("fps", [30.0, 50.0, 60.0, 120.0])
def test_frames_are_at_multiples_of_the_control_step(fps):
    clip = make_clip(frames=61, fps=fps)
    motion = make_motion(clip)
    assert len(motion) == int(round(60 / fps * 50, 6)) + 1
    for k in (0, 1, len(motion) // 2, len(motion) - 1):
        at = min(k / 50 * fps, 60)
        i, share = min(int(at), 59), at - min(int(at), 59)
        for column, values in ((slice(0, 3), clip.position), (slice(7, 36), clip.joints)):
            expected = (1 - share) * values[i] + share * values[i + 1]
            np.testing.assert_allclose(motion.qpos[k, column], expected, atol=1e-9)
        one, two = (Rotation.from_quat(np.roll(q, -1)) for q in clip.quaternion[i : i + 2])
        middle = one * Rotation.from_rotvec(share * (one.inv() * two).as_rotvec())
        turn = Rotation.from_quat(np.roll(motion.qpos[k, 3:7], -1))
        assert (turn.inv() * middle).magnitude() < 1e-7


def test_a_robot_in_the_state_of_a_motion_shows_its_bodies():
    motion = make_motion(make_clip(frames=40, fps=30.0))
    simulated = kinematics().bodies(motion.qpos, motion.qvel)
    seen = motion.bodies
    np.testing.assert_allclose(simulated.position, seen.position, atol=1e-12)
    np.testing.assert_allclose(simulated.rotation, seen.rotation, atol=1e-12)
    # The root's velocity is that of the motion, in the frames that the simulation wants.
    np.testing.assert_allclose(simulated.velocity[:, 0], seen.velocity[:, 0], atol=1e-12)
    np.testing.assert_allclose(
        simulated.angular_velocity[:, 0], seen.angular_velocity[:, 0], atol=1e-12
    )
    assert motion.qvel.shape == (len(motion), 35)


def test_a_steady_turn_has_its_rate_in_world_and_body_axes():
    motion = make_motion(make_clip(frames=60, fps=30.0))  # yaw rate 0.8 rad/s
    np.testing.assert_allclose(
        motion.angular_velocity[:, 0].T, [[0, 0, 0.8]] * len(motion), atol=1e-9
    )
    np.testing.assert_allclose(motion.qvel[:, 3:6], [[0, 0, 0.8]] * len(motion), atol=1e-9)
    np.testing.assert_allclose(motion.qvel[3:-3, 0], 0.3, atol=1e-9)


def test_resampling_to_the_same_rate_changes_nothing():
    clip = make_clip()
    same = resample(clip, 50.0)
    np.testing.assert_allclose(same.qpos, clip.qpos, atol=1e-12)
