"""What import repairs, with a note, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from prism_motor.tracking.motions.checks import check_clip, sole_heights
from prism_motor.tracking.motions.clip import write_clip
from prism_motor.tracking.motions.importing import ImportConfig, import_motion, put_on_ground

from .clips import FRAMES, ROBOT, make_clip, unitree, write_rows

RATE = ImportConfig(fps=50, ground=False)


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a motion after some change of its rows."""

    def write(change=None):
        rows = unitree(make_clip())
        if change:
            rows = change(rows)
        return write_rows(tmp_path / "some.csv", rows)

    return write


def test_a_sound_motion_is_only_shifted(file):
    clip = import_motion(file(), ImportConfig(fps=50, licence="CC0", source="here"))
    assert (clip.name, clip.fps, clip.licence, clip.source) == ("some", 50, "CC0", "here")
    assert len(clip.changes) == 1
    assert "onto the ground" in clip.changes[0]
    expected = make_clip()
    np.testing.assert_allclose(clip.joints, expected.joints, atol=1e-8)
    np.testing.assert_allclose(clip.quaternion, expected.quaternion, atol=1e-8)
    np.testing.assert_allclose(clip.position[:, :2], expected.position[:, :2], atol=1e-8)
    shift = clip.position[:, 2] - expected.position[:, 2]
    np.testing.assert_allclose(shift, shift[0], atol=1e-8)
    assert abs(sole_heights(clip.qpos).min()) < 2e-3


def test_the_rate_is_asked_for(file):
    with pytest.raises(ValueError, match=r"does not say how many frames per second.*--fps"):
        import_motion(file())


def test_a_given_rate_wins_and_is_noted(tmp_path):
    source = write_clip(make_clip(), tmp_path)
    assert import_motion(source).fps == 50
    clip = import_motion(source, ImportConfig(fps=25))
    assert clip.fps == 25
    assert clip.changes == ("taken as 25 frames per second instead of the file's 50",)
    bad = tmp_path / "slow.npz"
    np.savez(bad, root_pos=np.zeros((9, 3)), root_quat=np.ones((9, 4)), dof_pos=np.zeros((9, 29)),
             fps=0.5)  # fmt: skip
    with pytest.raises(ValueError, match=r"says that it has 0.5 frames per second"):
        import_motion(bad)


def test_sign_flips_are_undone(file):
    def flip(rows):
        rows[5:9, 3:7] *= -1
        return rows

    clip = import_motion(file(flip), RATE)
    assert clip.changes == ("2 sign flips of quaternions undone",)
    np.testing.assert_allclose(clip.quaternion, make_clip().quaternion, atol=1e-8)


def test_quaternions_are_normalised_or_refused(file):
    def stretch(factor):
        def change(rows):
            rows[:, 3:7] *= factor
            return rows

        return change

    clip = import_motion(file(stretch(1.05)), RATE)
    assert "normalised (lengths were 1.050 to 1.050)" in clip.changes[0]
    np.testing.assert_allclose(np.linalg.norm(clip.quaternion, axis=1), 1, atol=1e-12)
    assert import_motion(file(stretch(1.0001)), RATE).changes == ()
    with pytest.raises(ValueError, match=r"lengths from 1.5 to 1.5, not 1"):
        import_motion(file(stretch(1.5)), RATE)


def test_angles_slightly_beyond_a_limit_are_clipped_and_more_is_refused(file):
    knee = 7 + ROBOT.joint_names.index("left_knee")

    def bend(angle):
        def change(rows):
            rows[3:6, knee] = angle
            return rows

        return change

    clip = import_motion(file(bend(-0.187267)), RATE)
    assert clip.changes == (
        "joints clipped to their ranges in 3 frames, most: left_knee by 0.100 rad",
    )
    assert clip.joints.min(axis=0)[knee - 7] == -0.087267
    assert check_clip(clip).beyond_limits == 0
    with pytest.raises(ValueError, match=r"left_knee is 0.91 rad beyond.*radians.*another robot"):
        import_motion(file(bend(-1.0)), RATE)


def put(value, row, column):
    def change(rows):
        rows[row, column] = value
        return rows

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(np.nan, 4, 7), "1 value not finite, the first in frame 4 .left_hip_pitch"),
        (put(np.inf, 0, 2), "frame 0 .z."),
        (lambda rows: rows[:7], "has 7 frames; at least 8"),
        (lambda rows: rows * np.r_[100, 100, 100, [1] * 33], "metres"),
        (put(3.0, 10, 0), "jumps by .* m after frame 9"),
    ],
)
def test_motions_that_cannot_be_repaired_are_refused(change, words, file):
    with pytest.raises(ValueError, match=words):
        import_motion(file(change), RATE)


def test_resampling_is_noted_and_keeps_the_duration(file):
    clip = import_motion(file(), ImportConfig(fps=50, resample=25, ground=False))
    assert clip.fps == 25
    assert len(clip) == FRAMES // 2
    np.testing.assert_allclose(clip.joints, make_clip().joints[::2], atol=1e-8)
    assert clip.changes == ("resampled from 50 to 25 frames per second",)
    with pytest.raises(ValueError, match="frames are left"):
        import_motion(file(), ImportConfig(fps=50, resample=10))


def test_soles_against_mujoco():
    import mujoco

    from prism_motor.sim.scene import build_model

    clip = make_clip()
    model = build_model(ROBOT, timestep=0.005)
    data = mujoco.MjData(model)
    for n in (0, 9, 19):
        data.qpos[:] = clip.qpos[n]
        mujoco.mj_kinematics(model, data)
        for foot, side in enumerate(("left", "right")):
            soles = [data.geom(f"{side}_sole_{i}").xpos[2] - 0.005 for i in range(4)]
            assert sole_heights(clip.qpos)[foot, n] == pytest.approx(min(soles), abs=1e-12)


def test_a_single_bad_frame_does_not_lift_a_long_clip():
    clip = make_clip(frames=400, fps=100.0)
    position = clip.position.copy()
    position[:, 2] -= sole_heights(clip.qpos).min(axis=0)  # the lower sole touches in every frame
    position[200, 2] -= 0.1
    put_down = put_on_ground(replace(clip, position=position))
    assert abs(np.median(sole_heights(put_down.qpos).min(axis=0))) < 1e-3
    assert put_down.changes == ()


def test_check_finds_speed_limits_ground_and_contacts():
    clip = make_clip()
    assert check_clip(put_on_ground(clip), contacts=True).problems() == []
    joints = clip.joints.copy()
    elbow = ROBOT.joint_names.index("left_elbow")
    joints[10:, elbow] += 0.9  # at once: 45 rad/s
    found = check_clip(put_on_ground(replace(clip, joints=joints)))
    assert found.too_fast == 1
    assert found.problems() == [
        "joints faster than their motors in 1 frame; worst: left_elbow at 45 of 37 rad/s"
    ]
    low = replace(clip, position=clip.position - [0, 0, 0.2])
    assert "cm in the ground" in check_clip(low).problems()[0]
    high = replace(clip, position=clip.position + np.array([0, 0, 0.2]))
    assert "above the ground for half of the time" in check_clip(high).problems()[0]
    arm = clip.joints.copy()
    arm[:, ROBOT.joint_names.index("left_shoulder_roll")] = -0.6
    deep = check_clip(put_on_ground(replace(clip, joints=arm)), contacts=True)
    assert any("torso" in problem for problem in deep.problems())
    beyond = clip.joints.copy()
    beyond[4, elbow] = 2.2
    found = check_clip(replace(clip, joints=beyond))
    assert found.beyond_limits == 1
    assert found.worst_limit == "left_elbow by 0.106 rad"
