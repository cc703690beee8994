"""The clips that come with the package, and how clips are found."""

import numpy as np
import pytest

from prism_motor.tracking.motions.checks import check_clip
from prism_motor.tracking.motions.clip import write_clip
from prism_motor.tracking.motions.kinematic import MOTIONS, make_kinematic
from prism_motor.tracking.motions.library import SHIPPED, find_clip, find_clips, shipped_clips
from prism_motor.tracking.motions.walking import WALKS

from .clips import make_clip

MOVES = [
    "B_BowKarate", "B_HandsUp", "J_Dance0_StepTouch", "J_ShortDance16_JazzWalk", "M_Move18",
    "M_Move3",
]  # fmt: skip


def test_what_comes_with_the_package():
    assert shipped_clips() == sorted([*MOTIONS, *WALKS, *MOVES])
    size = sum(file.stat().st_size for file in SHIPPED.iterdir())
    assert size < 700_000


@pytest.mark.parametrize("name", [*MOTIONS, *WALKS, *MOVES])
def test_shipped_clips_are_sound_and_licensed(name):
    clip = find_clip(name)
    findings = check_clip(clip)
    assert findings.beyond_limits == 0
    assert -0.015 < findings.lowest < 0.002
    assert clip.source
    assert clip.attribution
    assert clip.licence == ("CC BY 4.0" if name in MOVES else "Apache-2.0")
    if name in MOVES:
        assert "Mitch Chaiet" in clip.attribution
        assert "resampled from 60 to 30 frames per second" in clip.changes


@pytest.mark.parametrize("name", MOTIONS)
def test_shipped_clips_are_what_make_makes(name):
    np.testing.assert_allclose(find_clip(name).qpos, make_kinematic(name).qpos, atol=5e-5)


def test_clips_are_found_by_name_file_and_folder(tmp_path):
    file = write_clip(make_clip(), tmp_path / "mine")
    assert find_clip(file).name == "some"
    assert [clip.name for clip in find_clips(["wave", tmp_path / "mine"])] == ["wave", "some"]
    assert len(find_clips()) == len(shipped_clips())


def test_what_cannot_be_found_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"Unknown motion 'wavee'.*Did you mean 'wave'"):
        find_clip("wavee")
    with pytest.raises(ValueError, match="There is no file"):
        find_clip("nowhere/x.npz")
    with pytest.raises(ValueError, match=r"no motion clips.*prism motions import"):
        find_clips([tmp_path])
    with pytest.raises(ValueError, match="Two motions are called 'wave'"):
        find_clips(["wave", "wave"])
