"""``prism record`` on a small custom suite."""

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")

from prism_motor.cli import main
from prism_motor.manipulation.tasks import SUITES

OPTIONS = ("--suite", "my_suite", "--task", "0", "--image-size", "0")


@pytest.fixture(autouse=True)
def my_suite(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples" / "extend"))
    sys.modules.pop("my_suite", None)
    importlib.import_module("my_suite")
    yield
    SUITES.remove("my_suite")


def test_numbers_agree_with_their_nouns(tmp_path, capsys):
    main(["demos", *OPTIONS, "--episodes", "1", "--out", str(tmp_path / "one")])
    text = capsys.readouterr().out
    assert "1 demonstration of my_suite reach, 'reach the goal'" in text
    assert "1 demonstration from 1 attempt (0 failed). Next: prism train" in text
    with pytest.raises(SystemExit) as stopped:
        main(["demos", *OPTIONS, "--episodes", "2", "--out", str(tmp_path / "one")])
    assert stopped.value.code == 2
    assert "already exists with 1 demonstration of my_suite reach" in capsys.readouterr().err


def test_every_setting_of_a_collection_is_an_option_with_its_help(capsys):
    with pytest.raises(SystemExit):
        main(["demos", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for option in (
        "--suite",
        "--task",
        "--episodes",
        "--image-size",
        "--seed",
        "--hold",
        "--noise",
    ):
        assert option in text
    assert "Steps recorded after success." in text


def test_an_unknown_suite_is_named_with_the_nearest_one(capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(["demos", "--suite", "my_suit", "--out", str(tmp_path / "none")])
    assert stopped.value.code == 2
    assert "Did you mean 'my_suite'" in capsys.readouterr().err
