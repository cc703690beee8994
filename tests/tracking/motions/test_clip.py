"""Clips survive their files, and files that are not clips are refused with the reason."""

import json

import numpy as np
import pytest

from prism_motor.tracking.motions.clip import Clip, read_clip, write_clip

from .clips import FRAMES, make_clip


@pytest.fixture
def stored(tmp_path):
    """Return a function that writes a clip with some arrays replaced, or header entries."""
    file = write_clip(make_clip(), tmp_path)
    with np.load(file) as arrays:
        parts = {name: arrays[name] for name in arrays.files}

    def change(header=None, drop=(), **arrays):
        values = parts | arrays
        if header is not None:
            values["header"] = np.array(json.dumps(json.loads(str(parts["header"])) | header))
        np.savez(file, **{name: v for name, v in values.items() if name not in drop})
        return file

    return change


def test_round_trip(tmp_path):
    clip = make_clip(source="here", licence="CC BY 4.0", attribution="Somebody", changes=("cut",))
    read = read_clip(write_clip(clip, tmp_path))
    for field in ("position", "quaternion", "joints"):
        np.testing.assert_allclose(getattr(read, field), getattr(clip, field), atol=2**-16)
    np.testing.assert_allclose(np.linalg.norm(read.quaternion, axis=1), 1, atol=1e-12)
    for field in ("name", "fps", "source", "licence", "attribution", "changes"):
        assert getattr(read, field) == getattr(clip, field)
    assert read.seconds == pytest.approx((FRAMES - 1) / 50)
    assert read.qpos.shape == (FRAMES, 36)
    again = write_clip(clip, tmp_path / "again")
    assert again.read_bytes() == (tmp_path / "some.npz").read_bytes()


def test_pieces_cover_the_clip_and_leave_out_a_rest_that_is_too_short():
    clip = make_clip(frames=105)
    pieces = list(clip.pieces(0.5))
    assert [len(piece) for piece in pieces] == [25] * 4
    assert [piece.name for piece in pieces] == [f"some-{i:03d}" for i in range(4)]
    np.testing.assert_array_equal(np.concatenate([p.joints for p in pieces]), clip.joints[:100])
    assert [len(piece) for piece in make_clip(frames=110).pieces(0.5)] == [25] * 4 + [10]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"drop": ("header",)}, "no header.*prism motions import"),
        ({"header": {"format": 99}}, "format 99"),
        ({"header": {"robot": "h1"}}, "robot 'h1'"),
        ({"header": {"joints": ["a"]}}, "policy order"),
        ({"header": {"fps": 0}}, "fps must be a number"),
        ({"header": {"fps": True}}, "fps must be a number"),
        ({"header": {"name": "../x"}}, "cannot be the name of a motion"),
        ({"header": {"licence": 3}}, "must be texts"),
        ({"header": {"changes": "cut"}}, "must be texts"),
        ({"drop": ("joints",)}, "'joints' must have the shape .* missing"),
        ({"joints": np.zeros((FRAMES, 23))}, r"'joints' must have the shape \(frames, 29\)"),
        ({"joints": np.full((FRAMES, 29), np.nan)}, "finite"),
        ({"position": np.zeros((5, 3))}, "same number of frames"),
        ({"quaternion": np.zeros((FRAMES, 4))}, "length 1"),
        ({"header": {}, "joints": np.array([[{}]], dtype=object)}, "pickled objects are refused"),
    ],
)
def test_damaged_files_are_refused(stored, change, words):
    with pytest.raises(ValueError, match=words):
        read_clip(stored(**change))


def test_files_that_are_no_archives_are_refused(tmp_path):
    file = tmp_path / "x.npz"
    with pytest.raises(ValueError, match="no file"):
        read_clip(file)
    file.write_bytes(b"not a zip")
    with pytest.raises(ValueError, match=r"cannot be read as an .npz"):
        read_clip(file)
    whole = write_clip(make_clip(), tmp_path)
    file.write_bytes(whole.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"cannot be read as an .npz"):
        read_clip(file)


def test_a_name_that_leaves_the_folder_is_refused(tmp_path):
    clip = make_clip()
    bad = Clip("../up", 50.0, clip.position, clip.quaternion, clip.joints)
    with pytest.raises(ValueError, match="cannot be the name of a motion"):
        write_clip(bad, tmp_path / "in")
    assert not (tmp_path / "up.npz").exists()
