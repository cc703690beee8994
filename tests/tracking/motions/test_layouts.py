"""The same motion comes out of every layout; other files are refused with what is wrong."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from prism_motor.tracking.motions.clip import write_clip
from prism_motor.tracking.motions.layouts import read_motion

from .clips import FRAMES, ROBOT, make_clip, unitree, write_mimic, write_rows

CLIP = make_clip()
UFO = [f"root_pos_{a}" for a in "xyz"] + [f"root_quat_{a}" for a in "xyzw"]
NUMBERED = [f"dof_{i}" for i in range(29)]
TIMES = np.arange(FRAMES)[:, None] / 50


def plain(file):
    return write_rows(file, unitree(CLIP))


def timed(file):
    return write_rows(file, np.concatenate([TIMES, unitree(CLIP)], axis=1))


def counted(file):
    return write_rows(file, np.concatenate([TIMES * 50, unitree(CLIP)], axis=1))


def headed(file):
    return write_rows(file, unitree(CLIP), UFO + NUMBERED)


def headed_with_time(file):
    rows = np.concatenate([TIMES, unitree(CLIP)], axis=1)
    return write_rows(file, rows, ["time", *UFO, *NUMBERED])


def named_in_another_order(file):
    order = np.random.default_rng(0).permutation(29)
    rows = np.concatenate([unitree(CLIP)[:, :7], CLIP.joints[:, order]], axis=1)
    return write_rows(file, rows, UFO + [f"{ROBOT.joint_names[i]}_joint" for i in order])


def bones(file):
    turn = Rotation.from_quat(np.roll(CLIP.quaternion, -1, axis=1)).as_euler("xyz", degrees=True)
    rows = [TIMES * 50, 100 * CLIP.position, turn, np.rad2deg(CLIP.joints)]
    header = ["Frame", *(f"root_translate{a}" for a in "XYZ"), *(f"root_rotate{a}" for a in "XYZ")]
    names = [f"{name}_joint_dof" for name in ROBOT.joint_names]
    return write_rows(file, np.concatenate(rows, axis=1), header + names)


def ufo_arrays(file):
    turn = np.roll(CLIP.quaternion, -1, axis=1)
    np.savez(file, root_pos=CLIP.position, root_quat=turn, dof_pos=CLIP.joints, fps=50)
    return file


def mjlab(file):
    return write_mimic(file, CLIP)


def isaac(file):
    return write_mimic(file, CLIP, "isaac")


def ours(file):
    return write_clip(CLIP, file.parent).rename(file)


@pytest.mark.parametrize(
    ("write", "fps", "layout"),
    [
        (plain, None, "Unitree"),
        (timed, 50, "UFO, with times"),
        (counted, None, "UFO, with times"),
        (headed, None, "UFO, with a header"),
        (headed_with_time, 50, "UFO, with a header"),
        (named_in_another_order, None, "UFO, with a header"),
        (bones, 120, "BONES-SEED"),
        (ufo_arrays, 50, "UFO"),
        (mjlab, 50, "mjlab"),
        (isaac, 50, "mjlab"),
        (ours, 50, "prism"),
    ],
)
def test_the_same_motion_from_every_layout(write, fps, layout, tmp_path):
    suffix = ".npz" if write in (ufo_arrays, mjlab, isaac, ours) else ".csv"
    raw = read_motion(write(tmp_path / f"motion{suffix}"))
    assert raw.layout == layout
    assert raw.fps == fps
    np.testing.assert_allclose(raw.position, CLIP.position, atol=2e-5)
    np.testing.assert_allclose(raw.joints, CLIP.joints, atol=2e-5)
    same = abs((raw.quaternion * CLIP.quaternion).sum(axis=1))
    np.testing.assert_allclose(same, 1, atol=1e-8)


def test_the_order_of_the_quaternion_can_be_given(tmp_path):
    rows = np.concatenate([CLIP.position, CLIP.quaternion, CLIP.joints], axis=1)
    raw = read_motion(write_rows(tmp_path / "m.csv", rows), "wxyz")
    np.testing.assert_allclose(raw.quaternion, CLIP.quaternion, atol=1e-8)


def test_what_was_reordered_or_converted_is_said(tmp_path):
    assert "Isaac order" in read_motion(isaac(tmp_path / "m.npz")).changes[0]
    assert "degrees" in read_motion(bones(tmp_path / "m.csv")).changes[0]
    assert read_motion(mjlab(tmp_path / "n.npz")).changes == ()


def joints_of_another_robot(file):
    header = UFO + [n.replace("wrist_yaw", "finger") for n in ROBOT.joint_names]
    return write_rows(file, unitree(CLIP), header)


def broken_line(file):
    plain(file).write_text(file.read_text() + "1,2,3\n")
    return file


def twice(file):
    return write_rows(file, unitree(CLIP), UFO + NUMBERED[:-1] + NUMBERED[:1])


def uneven(file):
    rows = np.concatenate([TIMES**2, unitree(CLIP)], axis=1)
    return write_rows(file, rows)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda f: write_rows(f, unitree(CLIP)[:, :-6]), "30 columns.*36.*23 joints.*another"),
        (lambda f: write_rows(f, np.zeros((9, 50))), "50 columns.*43 joints"),
        (lambda f: write_rows(f, np.zeros((9, 3))), "3 columns"),
        (joints_of_another_robot, "lacks left_wrist_yaw.*has left_finger"),
        (lambda f: write_rows(f, unitree(CLIP)[:, 1:], UFO[1:] + NUMBERED), "lacks root_pos_x"),
        (twice, "more than once"),
        (lambda f: write_rows(f, unitree(CLIP)[:, :-1], UFO + NUMBERED[:-1]), "lacks dof_28"),
        (broken_line, "line 21: 3 columns, but line 1 has 36"),
        (lambda f: f.write_text("1,2\n3,x\n") and f, "line 2: 'x' is not a number"),
        (lambda f: f.write_text("\n\n") and f, "is empty"),
        (lambda f: f.write_bytes(b"\xff\xfe\x00\x80") and f, "not a text file"),
        (uneven, "even steps"),
    ],
)  # fmt: skip
def test_other_tables_are_refused(write, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        read_motion(write(tmp_path / "m.csv"))


def save(**arrays):
    return lambda file: np.savez(file, **arrays) or file


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (save(a=np.zeros(3)), "has the arrays a; needed are root_pos"),
        (save(root_pos=CLIP.position, root_quat=CLIP.quaternion, dof_pos=np.zeros((20, 23))),
         r"dof_pos must be numbers of shape \(frames, 29\).*another robot"),
        (lambda f: write_mimic(f, CLIP, body_pos_w=np.zeros((20, 14, 3))), "30 bodies.*another"),
        (lambda f: write_mimic(f, CLIP, joint_pos=CLIP.joints + 0.8), "no known order.*another"),
        (lambda f: write_mimic(f, CLIP, fps=np.array(["x"])), "fps must be one number"),
        (lambda f: f.write_bytes(b"x") and f, "cannot be read"),
        (save(root_pos=np.array([{}], dtype=object)), "pickled"),
    ],
)  # fmt: skip
def test_other_arrays_are_refused(write, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        read_motion(write(tmp_path / "m.npz"))


def test_pickles_are_never_read(tmp_path):
    file = tmp_path / "m.pkl"
    file.write_bytes(b"cos\nsystem\n(S'touch danger'\ntR.")
    with pytest.raises(ValueError, match="Pickles are never read"):
        read_motion(file)
    with pytest.raises(ValueError, match="There is no file"):
        read_motion(tmp_path / "none.csv")
