"""``prism motions``: tables, notes, refusals and pictures."""

import numpy as np
import pytest

from prism_motor.cli import main
from prism_motor.sim.rendering import RenderingError, find_backend
from prism_motor.tracking.motions.clip import read_clip, write_clip
from tests.tracking.motions.clips import make_clip, unitree, write_rows


def fail(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(["motions", *map(str, words)])
    assert stopped.value.code == 2
    return capsys.readouterr()


def test_help_names_the_commands(capsys):
    for words, code in ([], 2), (["--help"], 0):
        with pytest.raises(SystemExit) as stopped:
            main(["motions", *words])
        assert stopped.value.code == code
        said = capsys.readouterr().out
        assert all(f"prism motions {name}" in said for name in ("list", "check", "import", "show"))
    assert "Did you mean 'list'" in fail(capsys, "lists").err


def test_list_shows_what_comes_with_prism(capsys):
    main(["motions", "list", "wave", "B_HandsUp"])
    header, wave, hands = capsys.readouterr().out.splitlines()
    assert header.split() == [
        "motion", "seconds", "fps", "frames", "lowest", "sole", "beyond", "limits", "licence"
    ]  # fmt: skip
    assert wave.split() == ["wave", "7.3", "50", "366", "0.0", "cm", "-", "Apache-2.0"]
    assert hands.endswith("CC BY 4.0")


def test_import_writes_good_files_and_names_the_others(tmp_path, capsys):
    folder = tmp_path / "csv"
    folder.mkdir()
    write_rows(folder / "good.csv", unitree(make_clip()))
    write_rows(folder / "narrow.csv", unitree(make_clip())[:, :30])
    rows = unitree(make_clip())
    rows[4, 10] = np.nan
    write_rows(folder / "holes.csv", rows)
    out = tmp_path / "clips"
    said = fail(capsys, "import", folder, "--fps", "50", "--out", out, "--licence", "mine")
    assert "2 of 3 files refused" in said.err
    assert "narrow.csv has 30 columns" in said.err
    assert "1 value not finite, the first in frame 4" in said.err
    assert "- good: " in said.out
    assert [file.name for file in out.iterdir()] == ["good.npz"]
    assert read_clip(out / "good.npz").licence == "mine"


def test_import_asks_for_the_rate_and_writes_nothing(tmp_path, capsys):
    file = write_rows(tmp_path / "one.csv", unitree(make_clip()))
    said = fail(capsys, "import", file, "--out", tmp_path / "out")
    assert said.err.startswith("prism: error: ")
    assert "Give --fps" in said.err
    assert not (tmp_path / "out").exists()
    assert "from 5 to 1000" in fail(capsys, "import", file, "--fps", "0").err


def test_files_of_one_name_are_not_mixed_up(tmp_path, capsys):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_rows(tmp_path / folder / "one.csv", unitree(make_clip()))
    said = fail(capsys, "import", tmp_path / "a", tmp_path / "b", "--fps", "50")
    assert "Several files are called one" in said.err


def test_check_takes_names_clips_and_foreign_files(tmp_path, capsys):
    clip = write_clip(make_clip(), tmp_path)
    foreign = write_rows(tmp_path / "foreign.csv", unitree(make_clip()))
    main(["motions", "check", "wave", str(clip), str(foreign), "--fps", "50"])
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()[1:4]] == ["wave", "some", "foreign"]
    assert "- foreign: " in said
    assert "Give files" in fail(capsys, "check").err
    assert "neither a file (.csv, .npz) nor a folder" in fail(capsys, "check", "nothing").err
    (tmp_path / "empty").mkdir()
    assert "no .csv and no .npz" in fail(capsys, "check", tmp_path / "empty").err


def test_make_makes_what_is_asked_for(tmp_path, capsys):
    main(["motions", "make", "bow", "stand", "--out", str(tmp_path)])
    assert "2 clips in" in capsys.readouterr().out
    assert sorted(file.stem for file in tmp_path.iterdir()) == ["bow", "stand"]
    assert "Did you mean 'bow'" in fail(capsys, "make", "bowl").err


@pytest.mark.slow
def test_make_walks(tmp_path, capsys):
    main(["motions", "make", "walk-turn", "--out", str(tmp_path)])
    assert read_clip(tmp_path / "walk-turn.npz").seconds == pytest.approx(10)


def test_show_draws_moments_and_videos(tmp_path, capsys):
    try:
        find_backend()
    except RenderingError as error:
        pytest.skip(str(error))
    import imageio.v3 as imageio

    clip = write_clip(make_clip(frames=10), tmp_path)
    size = ("--width", "64", "--height", "80")
    main(["motions", "show", "kick", "--out", str(tmp_path / "k.png"), *size, "--moments", "3"])
    picture = imageio.imread(tmp_path / "k.png").astype(int)
    assert picture.shape == (80, 3 * 64, 3)
    assert abs(picture[:, :64] - picture[:, 64:128]).max() > 50  # the middle of a kick
    main(["motions", "show", str(clip), "--out", str(tmp_path / "some.mp4"), *size])
    frames = imageio.imread(tmp_path / "some.mp4")
    assert frames.shape == (5, 80, 64, 3)
    assert "some, 0.2 s" in capsys.readouterr().out


def test_show_refuses_other_files_before_drawing(tmp_path, capsys):
    assert "kind of picture '.jpg'" in fail(capsys, "show", "kick", "--out", tmp_path / "k.jpg").err
    assert "must be even" in fail(capsys, "show", "kick", "--width", "65").err
    assert "Unknown motion 'kik'" in fail(capsys, "show", "kik").err
