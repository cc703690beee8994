"""Numbers on the command line of play, video and sim2sim; what they show is tested elsewhere."""

import pytest

from prism_motor.cli import main


@pytest.mark.parametrize("command", ["play", "video", "sim2sim"])
@pytest.mark.parametrize(
    "words",
    [
        ["--seconds", "nan"],
        ["--seconds", "inf"],
        ["--seconds", "-1"],
        ["--seconds", "0"],
        ["--seconds", "1e300"],
        ["--command", "nan", "0", "0"],
        ["--command", "0", "-inf", "0"],
        ["--command", "0", "0", "1e9"],
    ],
    ids=" ".join,
)
def test_numbers_out_of_range_are_refused(command, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "g1-prism" if command != "sim2sim" else str(tmp_path), *words])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert f"{words[0]} must be " in said or f"{words[0]}[" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("command", ["video", "sim2sim"])
@pytest.mark.parametrize("seed", ["-1", "2147483648"])
def test_seeds_have_a_range(command, seed, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "g1-prism", "--seed", seed])
    assert stopped.value.code == 2
    assert "--seed must be from 0 to" in capsys.readouterr().err
